"""Differences of the kernel's counters: those of 32 bits wrap within weeks, and all start anew when a device or CPU does."""

from collections.abc import Sequence
from operator import sub
from typing import Final

_HALF_RANGE: Final = 1 << 31
_MASK: Final = (1 << 32) - 1


def increases_32_bit(now: Sequence[int], before: Sequence[int]) -> list[int] | None:
    """By how much each `unsigned int` counter rose; None if one was restarted.

    A counter that fell by more than half its range has wrapped (the TIMER softirq at 1000 Hz does so after 49 days); one that
    fell by less was reset.
    """
    rises = list(map(sub, now, before))
    if min(rises, default=0) >= 0:
        return rises
    rises = [rise & _MASK for rise in rises]
    return rises if max(rises) < _HALF_RANGE else None
