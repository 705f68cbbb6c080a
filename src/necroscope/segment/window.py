"""A window of time, and the rows of a table that lie in it. None is all time."""

from typing import Any, Final

import numpy as np
import pyarrow as pa

from necroscope.errors import CorruptData

# What one answer may take: a file of a few KB can claim any number of rows.
MOST_BYTES: Final = 768 << 20

Window = tuple[int, int] | None
Numbers = np.ndarray[Any, np.dtype[np.int64]]


def check_size(size_bytes: int) -> None:
    if size_bytes > MOST_BYTES:
        raise CorruptData(f"more than {MOST_BYTES >> 20} MiB in one window")


def overlaps(window: Window, from_ns: int, to_ns: int) -> bool:
    """Whether a stretch (both ends included) touches a window (its end excluded)."""
    return window is None or (from_ns < window[1] and to_ns >= window[0])


def rows_within(rows: pa.Table, window: Window) -> pa.Table:
    """A slice without copying where times climb, as they do in a sealed row group."""
    if window is None or not rows.num_rows:
        return rows
    times = times_of(rows)
    if is_climbing(times):
        first, last = np.searchsorted(times, window)
        return rows.slice(first, max(last - first, 0))
    return rows_at(rows, np.flatnonzero((times >= window[0]) & (times < window[1])))


def rows_at(rows: pa.Table, numbers: Numbers) -> pa.Table:
    return rows.take(pa.array(numbers))


def times_of(rows: pa.Table) -> Numbers:
    times = rows.column("time")
    values: Numbers = (times.fill_null(0) if times.null_count else times).to_numpy()
    return values


def is_climbing(times: Numbers) -> bool:
    return bool((times[1:] >= times[:-1]).all())
