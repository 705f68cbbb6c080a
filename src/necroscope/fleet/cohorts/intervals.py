"""How far the ratio of two rates can be trusted: its interval of 95 %, from few events on.

Written by us: numpy has no incomplete beta function, and scipy, which has one, is 35 MB and half a
second of every question for it (see `fisher`). Lentz's continued fraction (Press et al., Numerical
Recipes, 6.4).
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

_TAIL: Final = 0.025
_STEPS: Final = 300
_TINY: Final = 1e-300
_CLOSE: Final = 1e-13
_HALVINGS: Final = 50


class Interval(NamedTuple):
    """`high` is infinity where nothing bounds it."""

    low: float
    high: float


@lru_cache(maxsize=64)
def ratio_interval(after: float, before: float, time_after: float, time_before: float) -> Interval:
    """Of two rates of events, given their counts and the time each was observed for: exact, by the
    share of `after` in both.
    """
    low = 0.0 if after <= 0 else beta_quantile(_TAIL, after, before + 1)
    high = 1.0 if before <= 0 else beta_quantile(1 - _TAIL, after + 1, before)
    return Interval(_ratio(low, time_after, time_before), _ratio(high, time_after, time_before))


def chance_of_few(after: float, before: float, time_after: float, time_before: float) -> float:
    """That there are this few after, or fewer, if the rate has not changed."""
    share = time_after / (time_after + time_before)
    # The other tail of the mirrored distribution: a difference from 1 would end at 0.
    return 1.0 if before <= 0 else beta_cdf(1 - share, before, after + 1)


def burst_size(counts: Sequence[int], times: Sequence[float]) -> float:
    """How many events come together: 1 if they come singly, more where a node that has one has
    several (Pearson's dispersion).
    """
    total, time = sum(counts), sum(times)
    pairs = (
        [
            (count, total * each / time)
            for count, each in zip(counts, times, strict=True)
            if each > 0
        ]
        if time
        else []
    )
    if total == 0 or len(pairs) < 2:
        return 1.0
    return max(
        1.0, sum((count - expected) ** 2 / expected for count, expected in pairs) / (len(pairs) - 1)
    )


def beta_quantile(chance: float, a: float, b: float) -> float:
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if beta_cdf(middle, a, b) < chance else (low, middle)
    return (low + high) / 2


def beta_cdf(x: float, a: float, b: float) -> float:
    if x <= 0 or x >= 1:
        return float(x >= 1)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(x, a, b) / a
    return 1.0 - front * _fraction(1 - x, b, a) / b


def _fraction(x: float, a: float, b: float) -> float:
    up, down = 1.0, 1 / _not_zero(1 - (a + b) * x / (a + 1))
    found = down
    for step in range(1, _STEPS):
        even = step * (b - step) * x / ((a + 2 * step - 1) * (a + 2 * step))
        odd = -(a + step) * (a + b + step) * x / ((a + 2 * step) * (a + 2 * step + 1))
        for term in (even, odd):
            down, up = 1 / _not_zero(1 + term * down), _not_zero(1 + term / up)
            found *= down * up
        if abs(down * up - 1) < _CLOSE:
            break
    return found


def _not_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


def _ratio(share: float, time_after: float, time_before: float) -> float:
    return math.inf if share >= 1 else share / (1 - share) * time_before / time_after
