"""The last rows of a table in a window: read backwards, until there are enough of them or the time
is over.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Final, NamedTuple

import pyarrow as pa

from necroscope.model.tables import TABLES
from necroscope.model.units import format_moment
from necroscope.segment.arrow import empty
from necroscope.store.query import Store
from necroscope.store.time_limit import TimeLimit

# An hour or so: each read lists the segments again.
_SEGMENTS_AT_ONCE: Final = 12


class LastRows(NamedTuple):
    """In order of time; `left_out` says in words what of the window is not among them."""

    rows: pa.Table
    left_out: list[str]


def read_last_rows(
    store: Store,
    table: str,
    from_ns: int,
    to_ns: int,
    cpus: Collection[int] | None = None,
    columns: Sequence[str] | None = None,
    *,
    most: int,
    limit: TimeLimit,
) -> LastRows:
    """`time` must be among the columns, if they are given."""
    parts = [
        empty(TABLES[table]).select(columns or [column.name for column in TABLES[table].columns])
    ]
    read_from_ns, count = to_ns, 0
    for start_ns in _starts(store, from_ns, to_ns):
        if limit.is_over() or count > most:
            break
        parts.append(store.rows(table, start_ns, read_from_ns, cpus, columns))
        read_from_ns, count = start_ns, count + parts[-1].num_rows
    rows = pa.concat_tables(reversed(parts)).unify_dictionaries()
    shown = rows.slice(max(count - most, 0))
    if count > most:
        return LastRows(
            shown,
            [
                (
                    f"before {format_moment(shown.column('time')[0].as_py())}: only the last"
                    f" {most:,} are listed"
                )
            ],
        )
    if read_from_ns > from_ns:
        unread = f"{format_moment(from_ns)} to {format_moment(read_from_ns)}"
        return LastRows(shown, [f"the time limit of {limit.seconds:g} s: {unread} was not read"])
    return LastRows(shown, [])


def _starts(store: Store, from_ns: int, to_ns: int) -> Iterator[int]:
    """Of the stretches to read, newest first; the first segment may reach back before the others,
    as the kernel log does.
    """
    store.catalog.refresh()
    start_ns = to_ns
    for segment in store.catalog.within((from_ns, to_ns))[-_SEGMENTS_AT_ONCE::-_SEGMENTS_AT_ONCE]:
        if from_ns < segment.from_ns < start_ns:
            start_ns = segment.from_ns
            yield start_ns
    yield from_ns
