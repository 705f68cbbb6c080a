"""Does a difference still matter among nodes that are alike in another one? Mantel and Haenszel's
question, answered exactly.

The usual chi-square form needs many nodes in every cell; here a handful decide, so the distribution
is worked out: the sum of one hypergeometric count a stratum.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from necroscope.fleet.cohorts.fisher import log_chance

Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class FourfoldTable:
    """A 2x2 table: nodes with and without a difference, affected and well."""

    affected_with: int
    well_with: int
    affected_without: int
    well_without: int

    @property
    def affected(self) -> int:
        return self.affected_with + self.affected_without

    @property
    def with_it(self) -> int:
        return self.affected_with + self.well_with

    @property
    def nodes(self) -> int:
        return self.affected + self.well_with + self.well_without

    def as_json(self) -> dict[str, int]:
        return {
            "affected_with": self.affected_with,
            "well_with": self.well_with,
            "affected_without": self.affected_without,
            "well_without": self.well_without,
        }


def table_of(has: Flags, affected: Flags, among: Flags | None = None) -> FourfoldTable:
    """Of all nodes, or of some."""
    if among is not None:
        has, affected = has[among], affected[among]
    both = int((has & affected).sum())
    with_it, failed = int(has.sum()), int(affected.sum())
    return FourfoldTable(both, with_it - both, failed - both, len(has) - with_it - failed + both)


def chance_given(has: Flags, affected: Flags, other: Flags) -> float:
    """The chance of this many affected nodes with `has`, or more, if only `other` mattered; 1 where
    nothing tells them apart.
    """
    strata = [table_of(has, affected, other), table_of(has, affected, ~other)]
    chances, first = np.ones(1), 0
    for stratum in strata:
        least = max(0, stratum.affected + stratum.with_it - stratum.nodes)
        most = min(stratum.affected, stratum.with_it)
        hits = np.arange(least, most + 1)
        chances = np.convolve(
            chances, np.exp(log_chance(hits, stratum.with_it, stratum.affected, stratum.nodes))
        )
        first += least
    seen = sum(stratum.affected_with for stratum in strata)
    return float(min(1.0, chances[seen - first :].sum()))
