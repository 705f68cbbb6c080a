"""The store: questions to a recording, answered from the segments, tables and row groups that the
window touches, no others.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self, TypeVar

import numpy as np
import pyarrow as pa

from necroscope.errors import CorruptData, RecordingError
from necroscope.model.reading import Gap, merge_gaps
from necroscope.model.span import Extent
from necroscope.model.tables import SCHEMA_VERSION, TABLES
from necroscope.segment.arrow import empty
from necroscope.segment.reader import SegmentReader
from necroscope.segment.recording import LIVE, Pin, read_pins
from necroscope.segment.sealed_reader import SegmentGoneError
from necroscope.segment.window import Window, is_climbing, overlaps, rows_at, times_of
from necroscope.stacks.samples import SampleTables
from necroscope.store.catalog import Catalog
from necroscope.store.merged_samples import merge_samples, with_stacks

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class RecordingInfo:
    """What a recording holds; times are None while it is empty."""

    schema: int
    node: str
    labels: dict[str, str]
    from_ns: int | None
    to_ns: int | None
    cpus: int | None
    segments: int
    bytes: int
    tables: dict[str, int]
    gaps: list[Gap]
    lost_samples: int
    idle_samples: int
    pins: list[Pin]


class Store:
    """Every question looks first at what came and went, so a store over a live recording is always
    up to date.
    """

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog

    @classmethod
    def open(cls, path: Path) -> Self:
        return cls(Catalog(path))

    def rows(
        self,
        table: str,
        from_ns: int,
        to_ns: int,
        cpus: Collection[int] | None = None,
        columns: Sequence[str] | None = None,
    ) -> pa.Table:
        """Rows with from_ns <= time < to_ns, in order of time; with `cpus` only those of these
        cores, if the table has cores.
        """
        if table not in TABLES:
            return pa.table({})
        wanted = (
            list(columns)
            if columns is not None
            else [column.name for column in TABLES[table].columns]
        )
        helpers = [
            c.name
            for c in TABLES[table].columns
            if c.name == "time" or (c.name == "cpu" and cpus is not None)
        ]
        needed = list(dict.fromkeys([*wanted, *helpers]))
        window = (from_ns, to_ns) if TABLES[table].is_timed else None
        parts = self._ask(window, lambda reader: reader.read(table, from_ns, to_ns, needed))
        rows = pa.concat_tables(
            [part for part in parts if part.num_rows] or [empty(TABLES[table]).select(needed)]
        )
        return _in_order(_of_cpus(rows, cpus)).select(wanted).unify_dictionaries()

    def samples(
        self, from_ns: int, to_ns: int, cpus: Collection[int] | None = None
    ) -> SampleTables:
        """The samples of a window, their stacks and frames merged over the segments."""
        window = from_ns, to_ns
        parts = self._ask(
            window,
            lambda reader: with_stacks(reader, _of_cpus(reader.read("samples", *window), cpus)),
        )
        merged = merge_samples(parts)
        return replace(merged, samples=_in_order(merged.samples).unify_dictionaries())

    def gaps(self, from_ns: int, to_ns: int, closest_ns: int | None = None) -> list[Gap]:
        """Gaps that touch the window, those included that reads of this store have found; joined if
        they lie closer than that.
        """
        window = (from_ns, to_ns)
        found = [
            gap
            for gaps in self._ask(window, SegmentReader.gaps)
            for gap in gaps
            if overlaps(window, gap.from_ns, gap.to_ns)
        ]
        shown = found if closest_ns is None else merge_gaps(found, closest_ns)
        return sorted(shown, key=lambda gap: (gap.from_ns, gap.to_ns, gap.table))

    def is_live(self) -> bool:
        """Whether its last segment is still being written, or was left so by a recorder that was
        killed.
        """
        self.catalog.refresh()
        return any(segment.path.name.endswith(LIVE) for segment in self.catalog.segments)

    def pins(self) -> list[Pin]:
        try:
            return read_pins(self.catalog.directory)
        except CorruptData:
            return []

    def span(self) -> Extent:
        """First and last time that was recorded; the kernel log, which reaches back farther, does
        not count.
        """
        self.catalog.refresh()
        segments = self.catalog.segments
        if not segments:
            raise RecordingError(
                f"{self.catalog.directory} holds nothing yet",
                "record or import something into it first",
            )
        last = max(segments, key=lambda segment: segment.to_ns)
        return self.catalog.reader(segments[0]).span[0], self.catalog.reader(last).span[1]

    def info(self) -> RecordingInfo:
        """Read from manifests and journals only; no table is opened but one with very many gaps."""
        readers = self._ask(None, lambda reader: reader)
        identity = self.catalog.identity
        gaps = [gap for reader in readers for gap in reader.gaps()] + self._damaged_files()
        return RecordingInfo(
            schema=identity.schema if identity else SCHEMA_VERSION,
            node=identity.node
            if identity
            else next((r.node for r in reversed(readers) if r.node), ""),
            labels=dict(identity.labels) if identity else {},
            from_ns=min((reader.span[0] for reader in readers), default=None),
            to_ns=max((reader.span[1] for reader in readers), default=None),
            cpus=max((reader.cpus for reader in readers if reader.cpus is not None), default=None),
            segments=len(readers),
            bytes=sum(reader.bytes for reader in readers),
            tables={
                name: rows
                for name in TABLES
                if (rows := sum(reader.tables.get(name, 0) for reader in readers))
            },
            gaps=sorted(gaps, key=lambda gap: (gap.from_ns, gap.to_ns, gap.table)),
            lost_samples=sum(gap.lost or 0 for gap in gaps if gap.table == "samples"),
            idle_samples=sum(reader.idle_samples for reader in readers),
            pins=self.pins(),
        )

    def _ask(self, window: Window, question: Callable[[SegmentReader], Answer]) -> list[Answer]:
        """The answers of all segments in the window, oldest first; asked again if one was sealed or
        removed meanwhile.
        """
        for attempts_left in reversed(range(10)):
            self.catalog.refresh()
            try:
                return [
                    question(self.catalog.reader(segment))
                    for segment in self.catalog.within(window)
                ]
            except SegmentGoneError:
                if not attempts_left:
                    raise
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _damaged_files(self) -> list[Gap]:
        """Files next to the segments: without them no row is missing, but labels or pins are."""
        causes = [self.catalog.damage] if self.catalog.damage else []
        try:
            read_pins(self.catalog.directory)
        except CorruptData as error:
            causes.append(error.facts)
        now_ns = max((segment.to_ns for segment in self.catalog.segments), default=0)
        return [Gap("recording", now_ns, now_ns, cause) for cause in causes]


def _of_cpus(rows: pa.Table, cpus: Collection[int] | None) -> pa.Table:
    """Rows of these cores; a row without a core belongs to none of them."""
    if cpus is None or "cpu" not in rows.column_names:
        return rows
    cores = rows.column("cpu").fill_null(-1).to_numpy()
    return rows_at(rows, np.flatnonzero(np.isin(cores, list(cpus))))


def _in_order(rows: pa.Table) -> pa.Table:
    """Row groups and segments follow each other in time but may overlap by a moment."""
    if "time" not in rows.column_names or is_climbing(times_of(rows)):
        return rows
    return rows_at(rows, np.argsort(times_of(rows), kind="stable"))
