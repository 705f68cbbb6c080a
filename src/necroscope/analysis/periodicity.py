"""Does it come regularly: the period of episodes or bursts, from one second to an hour."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from necroscope.model.units import NS_PER_S

_LEAST_BURSTS: Final = 4
_SHORTEST_S: Final = 1.0
# How far a burst may lie from where the period puts it, as a share of the period; and how many of
# them may be missing.
_JITTER: Final = 0.12
_MISSING: Final = 0.34


def period_of_starts(starts_ns: Sequence[int], bridge_s: float = 0.5) -> float | None:
    """Seconds between bursts, if they come at a steady beat; a missed one now and then does not
    break it.
    """
    starts = np.unique(np.array(sorted(starts_ns), dtype=np.float64)) / NS_PER_S
    starts = starts[np.append(True, np.diff(starts) > bridge_s)] if len(starts) else starts
    if len(starts) < _LEAST_BURSTS:
        return None
    apart = np.diff(starts)
    guess = float(np.median(apart))
    if guess < _SHORTEST_S:
        return None
    beats = np.maximum(np.round(apart / guess), 1.0)
    period = float(apart.sum() / beats.sum())
    off = np.abs(apart / beats - period) / period
    missed = float((beats - 1).sum() / beats.sum())
    return period if float(np.mean(off <= _JITTER)) >= 0.8 and missed <= _MISSING else None


def describe_period(period_s: float) -> str:
    """`every 10 s`, `every 5 min`."""
    if period_s < 90:
        return f"every {period_s:.0f} s" if period_s >= 9.5 else f"every {period_s:.1f} s"
    return f"every {period_s / 60:.0f} min"
