"""Does a treatment help? A test that may be looked at after every hit, and knows as soon as it can.

At each first hit of a node, `treated` nodes with the treatment and `untreated` without could have
been the one. If the treatment multiplies the rate by `r`, it is a treated one with probability
r * treated / (r * treated + untreated). The chance of all hits under many ratios, taken together,
against that under one ratio is a bet on which no player can gain, however often it is looked at: a
ratio that is outdone 20 to 1 is excluded, and stays so with a risk of 1 in 20 at any time
(ter Schure, Perez-Ortiz, Ly and Grunwald, The safe logrank test, 2020). No node is counted twice,
and what a silent node would have done is not guessed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, NamedTuple

import numpy as np

# From a hundredth of the rate to twenty times the rate.
_RATIOS: Final = np.geomspace(0.01, 20.0, 153)
_EXCLUDED: Final = np.log(20.0)
# A treatment that does not at least halve the rate is not worth keeping.
WORTH_KEEPING: Final = 0.5


class TrialFinding(StrEnum):
    HELPS = "it helps"
    DOES_NOT_HELP = "it does not help"
    UNKNOWN = "not known yet"


class TrialHit(NamedTuple):
    """A first hit of a node; both counts are of just before, with the node itself."""

    is_treated: bool
    treated: int
    untreated: int


@dataclass(frozen=True, slots=True)
class TrialResult:
    """`low` and `high` bound the ratio of the rates, at whatever moment one looks; `at_hit` is the
    hit after which it was known.
    """

    finding: TrialFinding
    low: float
    high: float
    hits_treated: int
    hits_untreated: int
    at_hit: int | None

    def as_json(self) -> dict[str, Any]:
        return {
            "finding": self.finding,
            "ratio_low": self.low,
            "ratio_high": self.high,
            "hits_treated": self.hits_treated,
            "hits_untreated": self.hits_untreated,
            "known_after_hits": self.at_hit,
        }


def judge_trial(hits: Sequence[TrialHit]) -> TrialResult:
    """The test stops at the first hit after which it knows: what comes later does not take it
    back.
    """
    logs = np.zeros(len(_RATIOS))
    low, high, finding = 0.0, np.inf, TrialFinding.UNKNOWN
    at_hit: int | None = None
    treated = 0
    for number, hit in enumerate(hits, 1):
        weight = _RATIOS * hit.treated
        chance = weight / (weight + hit.untreated)
        # Where one side has no nodes left, a hit tells nothing.
        logs = logs + np.log(np.clip(chance if hit.is_treated else 1 - chance, 1e-300, 1.0))
        treated += hit.is_treated
        low, high = _bounds(logs)
        finding = _finding(low, high)
        if finding is not TrialFinding.UNKNOWN:
            at_hit = number
            break
    seen = at_hit if at_hit is not None else len(hits)
    return TrialResult(finding, low, float(high), treated, seen - treated, at_hit)


def _bounds(logs: np.ndarray[Any, np.dtype[np.float64]]) -> tuple[float, float]:
    """The least and the greatest ratio that is not excluded; beyond the ends nothing is asked."""
    top = logs.max()
    together = top + np.log(np.exp(logs - top).mean())
    kept = _RATIOS[together - logs < _EXCLUDED]
    low = 0.0 if kept[0] == _RATIOS[0] else float(kept[0])
    return low, np.inf if kept[-1] == _RATIOS[-1] else float(kept[-1])


def _finding(low: float, high: float) -> TrialFinding:
    if high < 1:
        return TrialFinding.HELPS
    return TrialFinding.DOES_NOT_HELP if low > WORTH_KEEPING else TrialFinding.UNKNOWN
