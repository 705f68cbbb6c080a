"""Whether one of two variants fails more often: a sequential test that may be looked at after every
pair of runs, and stops when it knows.

Runs go in pairs, one of each variant on the same node, so that a bad node counts for neither. Pairs
that end alike say nothing. Were the variants alike, each other pair would be a toss of a coin. The
evidence against that is how likely the pairs are under every other coin taken together (a uniform
mixture), divided by how likely they are under a fair one. It is a martingale: however often one
looks, it exceeds 1/0.05 by luck with probability 0.05 at most (J. Ville, 1939).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import comb
from typing import Any, Final

from necroscope.analysis.interval import wilson

A, B = "a", "b"
_LUCK: Final = 0.05


@dataclass(frozen=True, slots=True)
class VariantComparison:
    """`only_a` are pairs in which only the run of A went well."""

    pairs: int
    only_a: int
    only_b: int
    successes: tuple[int, int]
    runs: tuple[int, int]

    @property
    def evidence(self) -> float:
        """How much more likely the pairs are if the variants differ: 1 is none."""
        decided = self.only_a + self.only_b
        # The mixture gives each count of the decided pairs the same chance.
        return 2.0**decided / ((decided + 1) * comb(decided, self.only_a))

    @property
    def better(self) -> str | None:
        """The variant that goes well more often, once that is known."""
        if self.evidence < 1 / _LUCK:
            return None
        return A if self.only_a > self.only_b else B

    @property
    def words(self) -> str:
        if self.better is not None:
            worse = B if self.better == A else A
            return f"{self.better.upper()} goes well more often than {worse.upper()}"
        return "it is not known which of the two goes well more often"

    def as_json(self) -> dict[str, Any]:
        sides = {}
        for place, name in enumerate((A, B)):
            successes, runs = self.successes[place], self.runs[place]
            share = successes / runs if runs else None
            interval = wilson(successes, runs)
            sides[name] = {
                "successes": successes, "runs": runs, "share": share, "interval": interval,
            }  # fmt: skip
        return {
            **sides,
            "pairs": self.pairs,
            "only_a": self.only_a,
            "only_b": self.only_b,
            "evidence": self.evidence,
            "better": self.better,
            "summary": self.words,
        }


def compare(pairs: Iterable[tuple[bool, bool]]) -> VariantComparison:
    """Of each pair whether the run of A, and that of B, went well."""
    ended = list(pairs)
    only_a = sum(a and not b for a, b in ended)
    only_b = sum(b and not a for a, b in ended)
    successes = sum(a for a, _ in ended), sum(b for _, b in ended)
    return VariantComparison(len(ended), only_a, only_b, successes, (len(ended), len(ended)))
