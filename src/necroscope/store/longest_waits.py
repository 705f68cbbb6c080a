"""The longest waits of any stretch of a recording: some of every part of it, never more than a
screen can show, and what all of them cost by program.

A week may hold millions. Each whole hour is read once and its longest waits are kept, so that a
long stretch is put together from what is known, newest first.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from necroscope.model.span import Span
from necroscope.model.tables import TABLES
from necroscope.model.units import NS_PER_S, format_moment
from necroscope.model.wait_rows import REACH_NS, number_waits
from necroscope.segment.arrow import empty
from necroscope.segment.window import rows_at, times_of
from necroscope.store.query import Store
from necroscope.store.time_limit import TimeLimit
from necroscope.store.window_reading import WindowReading

MOST: Final = 600
_PARTS: Final = 60
_HOUR_NS: Final = 3600 * NS_PER_S
_LONG_NS: Final = 2 * _HOUR_NS
# Rows of a wait that went on may come without what the first ones knew.
_KEPT: Final = (
    *("stack", "by_pid", "by_tid", "by_comm", "by_cgroup", "by_policy", "by_ran_ns", "by_stack"),
)
_NO_ROWS: Final = empty(TABLES["waits"])


@dataclass(frozen=True, slots=True)
class WaitGroup:
    """Waits of one kind of the tasks of one name with tasks of one name in the way."""

    kind: str
    comm: str
    by_comm: str | None
    count: int
    total_ns: int
    worst_ns: int


@dataclass(frozen=True, slots=True)
class LongestWaits:
    """`rows` are of `waits`, one for each wait, in order of time; `groups` those that cost most
    first, of all `count` waits. `left_out` says in words what was not read.
    """

    rows: list[dict[str, Any]]
    groups: list[WaitGroup]
    count: int
    left_out: list[str]


class _Sums:
    """Count, total and worst of the waits that ended, by kind and names."""

    def __init__(self) -> None:
        self.by_group: dict[tuple[str, str, str | None], tuple[int, int, int]] = {}

    def add(self, group: tuple[str, str, str | None], count: int, total: int, worst: int) -> None:
        known = self.by_group.get(group, (0, 0, 0))
        self.by_group[group] = known[0] + count, known[1] + total, max(known[2], worst)

    def add_rows(self, rows: pa.Table) -> None:
        names = ["kind", "comm", "by_comm"]
        ended = rows.filter(pc.invert(rows.column("is_open"))).select([*names, "waited_ns"])
        figures = [("waited_ns", what) for what in ("count", "sum", "max")]
        found = ended.unify_dictionaries().group_by(names, use_threads=False).aggregate(figures)
        for row in found.to_pylist():
            group = row["kind"], row["comm"], row["by_comm"]
            self.add(group, *(row[f"waited_ns_{what}"] for _, what in figures))

    def merge(self, other: "_Sums") -> None:
        for group, figures in other.by_group.items():
            self.add(group, *figures)


class _Part(NamedTuple):
    rows: pa.Table
    sums: _Sums
    read_to_ns: int


class WaitHistory:
    """Answers for any stretch; asked from several threads."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._hours: dict[int, _Part] = {}

    def longest(self, span: Span, limit: TimeLimit) -> LongestWaits:
        parts, unread = [], []
        for stretch in self._stretches(span):
            part = self._part(stretch, limit)
            parts.append(part)
            if part.read_to_ns < stretch.to_ns:
                unread.append(Span(part.read_to_ns, stretch.to_ns))
        sums = _Sums()
        for part in parts:
            sums.merge(part.sums)
        tables = [_NO_ROWS, *(part.rows for part in reversed(parts))]
        rows = pa.concat_tables(tables).unify_dictionaries()
        waits = list(_merge_rows(_some_of_every_part(_touching(rows, span), span)))
        for wait in waits:
            if wait["is_open"]:
                group = wait["kind"], wait["comm"], wait["by_comm"]
                sums.add(group, 1, wait["waited_ns"], wait["waited_ns"])
        groups = [WaitGroup(*group, *figures) for group, figures in sums.by_group.items()]
        groups.sort(key=lambda group: (-group.total_ns, group.comm))
        return LongestWaits(waits, groups, sum(g.count for g in groups), _notes(unread, limit))

    def _stretches(self, span: Span) -> list[Span]:
        """Newest first: whole hours, which are kept, and what lies around them."""
        self._store.catalog.refresh()
        segments = self._store.catalog.segments
        if not segments:
            return []
        first_ns = max(span.from_ns, min(segment.from_ns for segment in segments))
        last_ns = min(span.to_ns + REACH_NS, max(segment.to_ns for segment in segments) + 1)
        if last_ns - first_ns <= _LONG_NS:
            return [Span(first_ns, last_ns)] if first_ns < last_ns else []
        edges = [first_ns]
        edges += range(-(-(first_ns + 1) // _HOUR_NS) * _HOUR_NS, last_ns, _HOUR_NS)
        edges.append(last_ns)
        return [Span(*edge) for edge in pairwise(edges)][::-1]

    def _part(self, stretch: Span, limit: TimeLimit) -> _Part:
        """Whole hours are kept; one that ends with the recording may still grow, and is none."""
        hour = stretch.from_ns // _HOUR_NS
        is_whole = stretch == (hour * _HOUR_NS, (hour + 1) * _HOUR_NS)
        known = self._hours.get(hour) if is_whole else None
        if known is not None:
            return known
        part = self._read(stretch, limit)
        if is_whole and part.read_to_ns == stretch.to_ns:
            self._hours[hour] = part
        return part

    def _read(self, stretch: Span, limit: TimeLimit) -> _Part:
        reading = WindowReading(self._store, *stretch, limit, ("waits", "*"))
        sums, rows = _Sums(), _NO_ROWS
        for found in reading.segments(
            lambda reader: (
                _NO_ROWS if reading.stops_before(reader) else reader.read("waits", *stretch)
            )
        ):
            if found.num_rows:
                sums.add_rows(found)
                rows = _some_of_every_part(
                    pa.concat_tables([rows, found]).unify_dictionaries(), stretch
                )
        return _Part(rows, sums, reading.read_to_ns)


def _touching(rows: pa.Table, span: Span) -> pa.Table:
    ends = times_of(rows)
    starts = ends - rows.column("waited_ns").to_numpy()
    return rows_at(rows, np.flatnonzero((ends >= span.from_ns) & (starts < span.to_ns)))


def _some_of_every_part(rows: pa.Table, span: Span) -> pa.Table:
    """The longest of each part of the stretch, then the second of each, and so on."""
    if rows.num_rows <= MOST:
        return rows
    waited_ns = rows.column("waited_ns").to_numpy()
    part = np.clip((times_of(rows) - span.from_ns) * _PARTS // max(span.length_ns, 1), 0, _PARTS)
    order = np.lexsort((-waited_ns, part))
    rank = np.arange(len(order)) - np.searchsorted(part[order], part[order])
    kept = order[np.lexsort((-waited_ns[order], rank))[:MOST]]
    return rows_at(rows, np.sort(kept))


def _merge_rows(rows: pa.Table) -> Iterator[dict[str, Any]]:
    """Rows of one wait are joined: the last, with what only the others know."""
    listed = sorted(rows.to_pylist(), key=lambda row: row["time"])
    numbers = number_waits(
        ((row["tid"], row["kind"]), row["time"], row["waited_ns"], row["is_open"]) for row in listed
    )
    waits: dict[int, dict[str, Any]] = defaultdict(dict)
    for number, row in zip(numbers, listed, strict=True):
        before = waits[number]
        waits[number] = row | {name: before[name] for name in _KEPT if before and row[name] is None}
    return iter(sorted(waits.values(), key=lambda row: row["time"]))


def _notes(unread: Iterable[Span], limit: TimeLimit) -> list[str]:
    spans = sorted(unread)
    if not spans:
        return []
    reach = f"{format_moment(spans[0].from_ns)} to {format_moment(spans[-1].to_ns)}"
    return [f"the time limit of {limit.seconds:g} s: not all of {reach} was read"]
