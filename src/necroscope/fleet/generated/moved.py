"""A real recording at another time and under another node's name, so that all that reads recordings
reads this one too.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from necroscope.model.reading import Gap
from necroscope.model.tables import TABLES
from necroscope.segment.arrow import schema_of
from necroscope.segment.recording import Pin
from necroscope.stacks.samples import SampleTables
from necroscope.store.catalog import Catalog
from necroscope.store.query import RecordingInfo, Store

# Columns that hold a moment; all others of this type are lengths of time, or clocks that start at
# boot.
_MOMENTS: Final = frozenset(
    {"time", "end", "started_ns", "changed_ns", "finished_ns", "last_ns", "next_ns", "realtime_ns"}
)
_EVENTS: Final = "events"


class MovedStore(Store):
    """All that the recording holds, `by_ns` later; and `events` besides, which are given at the
    recording's own time.
    """

    def __init__(
        self, directory: Path, by_ns: int, node: str, events: Sequence[dict[str, Any]] = ()
    ) -> None:
        catalog = Catalog(directory)
        if catalog.identity is not None:
            catalog.identity = replace(catalog.identity, node=node)
        super().__init__(catalog)
        self._by_ns = by_ns
        self._node = node
        self._added = pa.Table.from_pylist(list(events), schema_of(TABLES[_EVENTS]))

    def rows(
        self,
        table: str,
        from_ns: int,
        to_ns: int,
        cpus: Collection[int] | None = None,
        columns: Sequence[str] | None = None,
    ) -> pa.Table:
        window = from_ns - self._by_ns, to_ns - self._by_ns
        rows = super().rows(table, *window, cpus, columns)
        if table == _EVENTS and cpus is None:
            is_within = pc.and_(
                pc.greater_equal(self._added["time"], window[0]),
                pc.less(self._added["time"], window[1]),
            )
            added = self._added.filter(is_within).select(rows.column_names)
            rows = pa.concat_tables([rows, added]).unify_dictionaries()
            rows = rows.sort_by("time") if "time" in rows.column_names else rows
        return self._moved(rows)

    def samples(
        self, from_ns: int, to_ns: int, cpus: Collection[int] | None = None
    ) -> SampleTables:
        window = super().samples(from_ns - self._by_ns, to_ns - self._by_ns, cpus)
        return replace(window, samples=self._moved(window.samples))

    def gaps(self, from_ns: int, to_ns: int, closest_ns: int | None = None) -> list[Gap]:
        return [
            self._moved_gap(gap)
            for gap in super().gaps(from_ns - self._by_ns, to_ns - self._by_ns, closest_ns)
        ]

    def pins(self) -> list[Pin]:
        return [
            replace(pin, from_ns=pin.from_ns + self._by_ns, to_ns=pin.to_ns + self._by_ns)
            for pin in super().pins()
        ]

    def info(self) -> RecordingInfo:
        info = super().info()
        return replace(
            info,
            node=self._node,
            from_ns=None if info.from_ns is None else info.from_ns + self._by_ns,
            to_ns=None if info.to_ns is None else info.to_ns + self._by_ns,
            gaps=[self._moved_gap(gap) for gap in info.gaps],
        )

    def _moved(self, rows: pa.Table) -> pa.Table:
        for place, field in enumerate(rows.schema):
            if field.name in _MOMENTS and field.type == pa.int64():
                rows = rows.set_column(place, field, pc.add(rows.column(place), self._by_ns))
        return rows

    def _moved_gap(self, gap: Gap) -> Gap:
        return replace(gap, from_ns=gap.from_ns + self._by_ns, to_ns=gap.to_ns + self._by_ns)
