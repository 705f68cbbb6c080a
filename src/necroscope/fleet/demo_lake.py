"""The demo's fleet: a shipped lake of generated nodes, and a real recording as their evidence, both
moved in time so that they end now. `benchmarks/demo_lake.py` made the tables.
"""

import json
import re
import tempfile
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from necroscope.fleet.bundle import make_bundle
from necroscope.fleet.lake import Lake, day_of
from necroscope.fleet.table_files import write_rows
from necroscope.model.reading import Gap
from necroscope.model.span import Span
from necroscope.model.tables import TABLES
from necroscope.model.units import NS_PER_S, format_moment, parse_moment_ns
from necroscope.segment.arrow import schema_of
from necroscope.segment.recording import Pin, segment_name
from necroscope.stacks.samples import SampleTables
from necroscope.store.catalog import Catalog
from necroscope.store.query import RecordingInfo, Store

# Columns that hold a moment; all others of this type are lengths of time, or clocks that start at
# boot.
_MOMENTS: Final = frozenset(
    [
        "time",
        "end",
        "span_from",
        "span_to",
        "analysed_ns",
        "started_ns",
        "ended_ns",
        "stop_from",
        "stop_to",
        "changed_ns",
        "finished_ns",
        "last_ns",
        "next_ns",
        "realtime_ns",
    ]
)
_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
_TEXTS_WITH_MOMENTS: Final = {"id", "report"}
_EVENTS: Final = "events"
_WRITER: Final = "demo"
ABOUT_FILE: Final = "about.json"
MINUTE_NS: Final = 60 * NS_PER_S


class MovedStore(Store):
    """All that the recording holds, `by_ns` later; and also `events`, which are given at the
    recording's own time.
    """

    def __init__(
        self, directory: Path, by_ns: int, node: str, events: Sequence[dict[str, Any]] = ()
    ) -> None:
        catalog = Catalog(directory)
        if catalog.identity is not None:
            catalog.identity = catalog.identity._replace(node=node)
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
        return _move(rows, self._by_ns)

    def samples(
        self, from_ns: int, to_ns: int, cpus: Collection[int] | None = None
    ) -> SampleTables:
        window = super().samples(from_ns - self._by_ns, to_ns - self._by_ns, cpus)
        return replace(window, samples=_move(window.samples, self._by_ns))

    def gaps(self, from_ns: int, to_ns: int, closest_ns: int | None = None) -> list[Gap]:
        return [
            self._moved_gap(gap)
            for gap in super().gaps(from_ns - self._by_ns, to_ns - self._by_ns, closest_ns)
        ]

    def pins(self) -> list[Pin]:
        return [
            pin._replace(from_ns=pin.from_ns + self._by_ns, to_ns=pin.to_ns + self._by_ns)
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

    def _moved_gap(self, gap: Gap) -> Gap:
        return gap._replace(from_ns=gap.from_ns + self._by_ns, to_ns=gap.to_ns + self._by_ns)


@dataclass(frozen=True, slots=True)
class RecordedIncident:
    """The real incident behind all generated ones, at the recording's own time; `reset` is the
    event of the network card that was added to it.
    """

    recording: Path
    window: Span
    held: Span
    core: int
    reset: dict[str, Any]

    @classmethod
    def read(cls, data: Path, recording: Path) -> "RecordedIncident":
        about = json.loads((data / ABOUT_FILE).read_text("utf-8"))
        info = Store.open(recording).info()
        assert info.from_ns is not None, "the recording holds something"
        assert info.to_ns is not None, "the recording holds something"
        window = Span(info.from_ns, info.to_ns + 1)
        return cls(recording, window, Span(*about["held"]), about["core"], about["reset"])

    def moved_store(self, by_ns: int, node: str) -> MovedStore:
        return MovedStore(self.recording, by_ns, node, [self.reset])

    def bundle(self, by_ns: int, node: str, work: Path) -> tuple[str, bytes]:
        """Name and content, as a node makes them."""
        window, held = (Span(span[0] + by_ns, span[1] + by_ns) for span in (self.window, self.held))
        store = self.moved_store(by_ns, node)
        content = make_bundle(store, window, [held], frozenset({self.core}), work)
        assert content is not None, "the shipped recording fits into a bundle"
        return segment_name(window[0]), content


@dataclass(frozen=True, slots=True)
class DemoFleet:
    nodes: int
    affected: int
    incidents: int
    bundles: int


def write_demo_lake(data: Path, recording: Path, lake: Lake, now_ns: int) -> DemoFleet:
    """The shipped tables, their times moved so that their last minute is now, with the evidence of
    those incidents that have a bundle.
    """
    about = json.loads((data / ABOUT_FILE).read_text("utf-8"))
    by_ns = now_ns // MINUTE_NS * MINUTE_NS - about["now_ns"]
    tables = {
        file.stem: move_rows(pq.ParquetFile(file).read(), by_ns)
        for file in sorted(data.glob("*.parquet"))
    }
    incident = RecordedIncident.read(data, recording)
    tables["incidents"], bundles = _write_bundles(lake, incident, tables["incidents"])
    for table, rows in tables.items():
        write_rows(lake, table, rows, _WRITER, now_ns)
    nodes, affected = (tables[table]["node"].unique() for table in ("pulses", "events"))
    return DemoFleet(len(nodes), len(affected), tables["events"].num_rows, bundles)


def move_rows(rows: pa.Table, by_ns: int) -> pa.Table:
    """As they would have been, had all happened this much later: also the moments in texts."""
    rows = _move(rows, by_ns)
    for name in _TEXTS_WITH_MOMENTS & set(rows.column_names):
        texts = [_move_moments(text, by_ns) for text in rows[name].to_pylist()]
        rows = rows.set_column(rows.column_names.index(name), name, [texts])
    return rows


def _move(rows: pa.Table, by_ns: int) -> pa.Table:
    for place, field in enumerate(rows.schema):
        if field.name in _MOMENTS and field.type == pa.int64():
            rows = rows.set_column(place, field, pc.add(rows.column(place), by_ns))
    return rows


def _move_moments(text: str, by_ns: int) -> str:
    return _MOMENT.sub(lambda match: format_moment(parse_moment_ns(match[0], 0) + by_ns), text)


def _write_bundles(lake: Lake, incident: RecordedIncident, rows: pa.Table) -> tuple[pa.Table, int]:
    """The incidents with the names of their bundles, and how many there are."""
    names: list[str | None] = []
    columns = (rows[name].to_pylist() for name in ("cluster", "node", "time", "bundle"))
    with tempfile.TemporaryDirectory(prefix="necroscope-demo-") as work:
        for cluster, node, time_ns, bundle in zip(*columns, strict=True):
            if bundle is None:
                names.append(None)
                continue
            by_ns = time_ns - incident.held[0]
            name, content = incident.bundle(by_ns, node, Path(work))
            day = day_of(incident.window[0] + by_ns)
            lake.put(f"bundles/cluster={cluster}/date={day}/{node}--{name}.bundle", content)
            names.append(name)
    place = rows.column_names.index("bundle")
    count = len(names) - names.count(None)
    return rows.set_column(place, rows.schema.field(place), [names]), count
