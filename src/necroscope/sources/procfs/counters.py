"""Differences of the kernel's counters: those of 32 bits wrap within weeks, and all start anew when
a device or CPU does.
"""

from collections.abc import Sequence
from operator import sub
from typing import Final

from necroscope.model.units import NS_PER_S

_HALF_RANGE: Final = 1 << 31
_MASK: Final = (1 << 32) - 1
# More than a core takes of interrupts, softirqs or packets.
_MOST_A_SECOND: Final = 10_000_000


def increases_32_bit(
    now: Sequence[int], before: Sequence[int], elapsed_ns: int
) -> list[int] | None:
    """By how much each `unsigned int` counter rose; None if one was restarted.

    A counter that fell has wrapped if that makes a rise which is possible in this time (the TIMER
    softirq at 1000 Hz wraps after 49 days). Else it was restarted, as those of a NIC are when a
    reset gives it new vectors, however far they had come.
    """
    rises = list(map(sub, now, before))
    if min(rises, default=0) >= 0:
        return rises
    rises = [rise & _MASK for rise in rises]
    return (
        rises if max(rises) <= min(_HALF_RANGE, _MOST_A_SECOND * elapsed_ns // NS_PER_S) else None
    )
