"""Rows of `waits` that belong to one wait: it is written when it is first seen, whenever it has
become twice as long, and when it ends.
"""

from collections.abc import Iterable
from typing import Final

from necroscope.model.units import NS_PER_S

# A row says when its wait ended, or how long it lasted by then, which it does again when it has
# become twice as long: whoever waits in a short stretch has a row soon after it.
REACH_NS: Final = 120 * NS_PER_S


def number_waits(rows: Iterable[tuple[object, int, int, bool]]) -> list[int]:
    """For each row, in order of time, the number of its wait, of (task and kind, time, waited_ns,
    is_open): what begins before an open row of the same task was written goes on from there.
    """
    latest: dict[object, tuple[int, int, bool]] = {}
    numbers: list[int] = []
    count = 0
    for key, time_ns, waited_ns, is_open in rows:
        number, last_ns, was_open = latest.get(key, (0, 0, False))
        if not (was_open and time_ns - waited_ns < last_ns):
            number, count = count, count + 1
        latest[key] = number, time_ns, is_open
        numbers.append(number)
    return numbers


def last_of_each(rows: Iterable[tuple[object, int, int, bool]]) -> list[int]:
    """Places of the rows that hold the others of their wait."""
    return sorted({number: place for place, number in enumerate(number_waits(rows))}.values())
