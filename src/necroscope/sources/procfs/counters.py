"""Differences of the kernel's counters: those of 32 bits wrap within weeks, and all restart when
a device or CPU does.
"""

from collections.abc import Sequence
from operator import sub
from typing import Final

from necroscope.model.units import NS_PER_S

_HALF_RANGE: Final = 1 << 31
_MASK: Final = (1 << 32) - 1
# More than a core takes of interrupts, softirqs or packets.
_MOST_PER_SECOND: Final = 10_000_000


def increases_32_bit(
    now: Sequence[int], before: Sequence[int], elapsed_ns: int
) -> Sequence[int] | None:
    return rises_32_bit(list(map(sub, now, before)), elapsed_ns)


def rises_32_bit(rises: Sequence[int], elapsed_ns: int) -> Sequence[int] | None:
    """By how much each `unsigned int` counter rose, given the differences; None if one was
    restarted.

    A counter that fell has wrapped if that makes a rise which is possible in this time (the TIMER
    softirq at 1000 Hz wraps after 49 days). Else it was restarted, as those of a NIC are when a
    reset gives it new vectors, however far they had come.
    """
    if min(rises, default=0) >= 0:
        return rises
    wrapped = [rise & _MASK for rise in rises]
    most = min(_HALF_RANGE, _MOST_PER_SECOND * elapsed_ns // NS_PER_S)
    return wrapped if max(wrapped) <= most else None
