"""From which size of a number on nodes fail: how large it was while they could have failed, against
how large it was when they did.

    moments at risk, each of some days        what was hit, at the moment of the hit
    uptime   1   2   3   4   5   6   7        6.3  7.1  6.8
    count    9   21  28  40  51  59  70       60   66   61        (one column per moment or hit)

A node is at risk from the first that is known of its boot until it is hit, rebooted or silent; what
comes after is not known and not counted (censoring). If size did not matter, hits would fall where
the time is: of `n` hits this many above a cut as the share of time above it. A cut weighs as much
as a free share explains the hits better (beta-binomial against binomial). The weights give the most
likely cut and its interval, and their mean is an e-value: chance alone takes it above 20 in 1 of 20
cases at most (Vovk and Wang 2021).
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from necroscope.fleet.cohorts.fisher import log_factorials

Floats = NDArray[np.float64]
# Below this nothing can be said of where a threshold lies.
_LEAST_HITS: Final = 5
# An e-value of 20 for each number that was asked about.
_STRIKING: Final = 20.0
_CUTS: Final = 512
_TAIL: Final = 0.025
# Stricter than between facts: both thresholds were put where they fit best.
_OF_ITS_OWN: Final = 0.01


class DoseRelation(StrEnum):
    FIRST = "first"
    EXPLAINED = "explained by the first"
    INSEPARABLE = "cannot be separated from the first"
    OF_ITS_OWN = "of its own"


@dataclass(frozen=True, slots=True)
class TimeAtRisk:
    """`at_risk[number, moment]` and `at_hit[number, hit]` are sizes, NaN where nothing is known;
    `days` is the time that each moment stands for.
    """

    names: tuple[str, ...]
    days: Floats
    at_risk: Floats
    at_hit: Floats


@dataclass(frozen=True, slots=True)
class Dose:
    """Hits come above `threshold` (or below it, if not `is_above`), which lies between `low` and
    `high` with 95 %. Rates are hits per node-day, on either side. `evidence` is an e-value as its
    logarithm.
    """

    name: str
    threshold: float
    low: float
    high: float
    is_above: bool
    hits: int
    days: float
    rate_beyond: float
    rate_within: float
    evidence: float
    relation: DoseRelation = DoseRelation.FIRST
    chance_given_first: float = 0.0

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "threshold": self.threshold,
            "low": self.low,
            "high": self.high,
            "is_above": self.is_above,
            "hits": self.hits,
            "node_days": round(self.days, 2),
            "hits_per_node_day_beyond": self.rate_beyond,
            "hits_per_node_day_within": self.rate_within,
            "log_evidence": round(self.evidence, 2),
            "relation": self.relation,
            "chance_given_first": self.chance_given_first,
        }


def find_doses(risk: TimeAtRisk) -> tuple[Dose, ...]:
    """The numbers whose size matters, the one that explains most first, and how the others stand to
    it.
    """
    found = [
        dose
        for number in range(len(risk.names))
        if (dose := _dose(risk, number)) is not None
        and dose.evidence >= np.log(_STRIKING * len(risk.names))
    ]
    if not found:
        return ()
    found.sort(key=lambda dose: (-dose.evidence, dose.name))
    return (found[0], *(_relate_to_first(risk, dose, found[0]) for dose in found[1:]))


def _dose(risk: TimeAtRisk, number: int) -> Dose | None:
    at_risk, at_hit = risk.at_risk[number], risk.at_hit[number]
    known = ~np.isnan(at_risk)
    sizes, days = at_risk[known], risk.days[known]
    hits = np.sort(at_hit[~np.isnan(at_hit)])
    if len(hits) < _LEAST_HITS or not days.sum():
        return None
    cuts = _cuts(sizes, hits)
    if len(cuts) < 2:
        return None
    order = np.argsort(sizes)
    passed = np.concatenate([[0.0], np.cumsum(days[order])])
    # Half a moment on either side: no cut may have hits and no time.
    least = passed[-1] / (2 * len(sizes))
    below = np.clip(passed[np.searchsorted(sizes[order], cuts)], least, passed[-1] - least)
    hits_above = len(hits) - np.searchsorted(hits, cuts)
    share = 1 - below / passed[-1]
    weights = _log_weights(hits_above, len(hits), share)
    return _make_dose(
        risk.names[number], cuts, weights, hits_above / len(hits) > share, hits, sizes, days
    )


def _cuts(sizes: Floats, hits: Floats) -> Floats:
    """Where a threshold may lie: as fine as there is time, and at every hit."""
    at = np.linspace(0, 1, _CUTS)
    return np.unique(
        np.concatenate([np.quantile(sizes, at), np.quantile(hits, at, method="nearest")])
    )


def _log_weights(hits_above: NDArray[np.int64], hits: int, share: Floats) -> Floats:
    """How much better a free share of hits above each cut explains them than the share of time."""
    logs = log_factorials(hits + 1)
    below = hits - hits_above
    free = logs[hits_above] + logs[below] - logs[hits + 1]
    return np.asarray(free - hits_above * np.log(share) - below * np.log1p(-share))


def _make_dose(
    name: str,
    cuts: Floats,
    weights: Floats,
    is_up: NDArray[np.bool_],
    hits: Floats,
    sizes: Floats,
    days: Floats,
) -> Dose:
    """Every size is as likely a threshold as any other before hits are looked at: a cut stands for
    the room up to its neighbours.
    """
    room = np.gradient(cuts)
    top = weights.max()
    plain = np.exp(weights - top) * room
    is_above = bool(is_up[np.argmax(weights + np.log(room))])
    part = np.where(is_up == is_above, plain, 0.0)
    low, middle, high = np.interp(
        [_TAIL, 0.5, 1 - _TAIL], np.cumsum(part) / part.sum(), cuts
    ).tolist()
    beyond = sizes >= middle if is_above else sizes < middle
    hit_beyond = int((hits >= middle if is_above else hits < middle).sum())
    inside = float(days[~beyond].sum())
    return Dose(
        name=name,
        threshold=middle,
        low=low,
        high=high,
        is_above=is_above,
        hits=len(hits),
        days=float(days.sum()),
        rate_beyond=hit_beyond / max(float(days[beyond].sum()), float(days.min())),
        rate_within=(len(hits) - hit_beyond) / inside if inside else 0.0,
        evidence=float(top + np.log(plain.sum() / room.sum())),
    )


def _relate_to_first(risk: TimeAtRisk, dose: Dose, first: Dose) -> Dose:
    """Does it still matter at times that are alike in the first, and the first at times alike in
    it?
    """
    of_it, of_first = _chance_given(risk, dose, first), _chance_given(risk, first, dose)
    relation = DoseRelation.OF_ITS_OWN
    if of_it > _OF_ITS_OWN:
        is_first_needed = of_first <= _OF_ITS_OWN
        relation = DoseRelation.EXPLAINED if is_first_needed else DoseRelation.INSEPARABLE
    return replace(dose, relation=relation, chance_given_first=of_it)


def _chance_given(risk: TimeAtRisk, dose: Dose, other: Dose) -> float:
    """Of this many hits beyond the dose's threshold, or more, if only the other mattered: the sum
    of one binomial count for each side of the other's threshold.
    """
    of_it, given = risk.names.index(dose.name), risk.names.index(other.name)
    (time_known, time_beyond, time_other), (hit_known, hit_beyond, hit_other) = (
        (
            ~np.isnan(sizes[of_it] + sizes[given]),
            _beyond(sizes[of_it], dose),
            _beyond(sizes[given], other),
        )
        for sizes in (risk.at_risk, risk.at_hit)
    )
    chances, seen = np.ones(1), 0
    for side in (True, False):
        days = risk.days[time_known & (time_other == side)]
        days_beyond = risk.days[time_known & (time_other == side) & time_beyond]
        hits = int((hit_known & (hit_other == side)).sum())
        seen += int((hit_known & (hit_other == side) & hit_beyond).sum())
        share = float(days_beyond.sum() / days.sum()) if len(days) else 1.0
        chances = np.convolve(chances, _binomial(hits, share))
    return float(min(1.0, chances[seen:].sum()))


def _beyond(sizes: Floats, dose: Dose) -> NDArray[np.bool_]:
    return np.asarray(sizes >= dose.threshold if dose.is_above else sizes < dose.threshold)


def _binomial(count: int, share: float) -> Floats:
    if share <= 0 or share >= 1:
        certain = np.zeros(count + 1)
        certain[count if share >= 1 else 0] = 1.0
        return certain
    logs, hits = log_factorials(count), np.arange(count + 1)
    return np.asarray(
        np.exp(
            logs[count]
            - logs[hits]
            - logs[count - hits]
            + hits * np.log(share)
            + (count - hits) * np.log1p(-share)
        )
    )
