"""Rows as the live view needs them: those of the last tick, and those of a window laid out by
second.
"""

from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import Final, cast

from necroscope.model.reading import Rows, Value
from necroscope.model.tables import TABLES
from necroscope.model.units import NS_PER_S
from necroscope.views.tui.screen import BUSY_MODES, MODES, Modes

TIME: Final = 0
CPU: Final = 1
ELAPSED: Final = TABLES["cores"].index_of("elapsed_ns")
_MODE_COLUMNS: Final = tuple(TABLES["cores"].index_of(f"{mode}_ns") for mode in MODES)
_ALL_MODES: Final = itemgetter(*_MODE_COLUMNS)
_BUSY_MODES: Final = itemgetter(*_MODE_COLUMNS[: len(BUSY_MODES)])
CoreRow = tuple[int, ...]


def number(value: Value) -> int:
    """A value of a column that holds whole numbers and is never null."""
    assert isinstance(value, int)
    return value


def optional(value: Value) -> int | None:
    return None if value is None else number(value)


def tick_of(cores: Rows) -> int:
    """The time between two reads, as the rows of `cores` say it."""
    return number(cores[-1][ELAPSED]) if cores else NS_PER_S


def fresh_ns(tick_ns: int) -> int:
    """How old the last read may be and still speak of now. Some tables are read each second however
    short the tick is.
    """
    return max(tick_ns, NS_PER_S) * 3 // 2


def last_read(rows: Rows, at_ns: int, tick_ns: int) -> Rows:
    """The rows of the last read, or none when that is too long ago: an old value must not pass for
    the present one.
    """
    if not rows or at_ns - number(rows[-1][TIME]) > fresh_ns(tick_ns):
        return []
    first_ns = number(rows[-1][TIME]) - tick_ns // 2
    start = len(rows)
    while start and number(rows[start - 1][TIME]) >= first_ns:
        start -= 1
    return rows[start:]


def core_rows(rows: Rows) -> list[CoreRow]:
    """Rows of `cores`, whose columns are all whole numbers: a check of each value would cost more
    than all else here.
    """
    return cast("list[CoreRow]", rows)


def modes_of(row: CoreRow) -> Modes:
    """Shares of the elapsed time, not of the sum of the modes: time that is missing stays
    missing.
    """
    elapsed_ns = max(row[ELAPSED], 1)
    return Modes(tuple([min(part_ns / elapsed_ns, 1.0) for part_ns in _ALL_MODES(row)]))


def busy_ns_of(row: CoreRow) -> int:
    return sum(_BUSY_MODES(row))


def mode_ns_of(mode: str) -> Callable[[CoreRow], int]:
    """A function that reads the time in one mode."""
    return itemgetter(_MODE_COLUMNS[MODES.index(mode)])


def seconds_of(end_ns: int, elapsed_ns: int, origin_ns: int, seconds: int) -> range:
    """The seconds since `origin_ns` that a row speaks for: those whose middle it covers, or the one
    that its own middle lies in.

    Ticks are never exactly a second. This way rows that follow each other leave no hole, and a tick
    that is missing does.
    """
    half_ns = NS_PER_S // 2
    first, last = (
        -((half_ns + origin_ns - end_ns + elapsed_ns) // NS_PER_S),
        (end_ns - origin_ns - half_ns) // NS_PER_S,
    )
    if first > last:
        first = last = (end_ns - elapsed_ns // 2 - origin_ns) // NS_PER_S
    return range(max(first, 0), min(last, seconds - 1) + 1)


def by_second(rows: Iterable[CoreRow], at_ns: int, seconds: int) -> list[list[CoreRow]]:
    """Rows of one core, laid out by the seconds up to `at_ns` that they speak for."""
    laid_out: list[list[CoreRow]] = [[] for _ in range(seconds)]
    origin_ns = at_ns - seconds * NS_PER_S
    for row in rows:
        for second in seconds_of(row[TIME], row[ELAPSED], origin_ns, seconds):
            laid_out[second].append(row)
    return laid_out


def shares(
    laid_out: Iterable[list[CoreRow]], part_ns_of: Callable[[CoreRow], int]
) -> tuple[float | None, ...]:
    """The share of a part of the time in each second; None for a second that no row speaks for."""
    return tuple([_share(rows, part_ns_of) if rows else None for rows in laid_out])


def _share(rows: list[CoreRow], part_ns_of: Callable[[CoreRow], int]) -> float:
    if len(rows) == 1:
        return min(part_ns_of(rows[0]) / (rows[0][ELAPSED] or 1), 1.0)
    return min(sum(map(part_ns_of, rows)) / (sum([row[ELAPSED] for row in rows]) or 1), 1.0)
