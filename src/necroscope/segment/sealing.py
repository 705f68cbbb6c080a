"""Turns a live segment into a sealed one, in steps such that a crash between any two leaves a segment that can be read.

The journal is streamed into `.sealing`, which is made durable and renamed to the segment's name; only then the journal goes.
"""

import contextlib
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from necroscope.errors import CorruptData
from necroscope.model.reading import Gap
from necroscope.model.tables import SCHEMA_VERSION, TABLES
from necroscope.segment.arrow import batch_from_rows, batch_of, gaps_of
from necroscope.segment.checksum import sync_directory
from necroscope.segment.core_minutes import CORE_COLUMNS, DELAY_COLUMNS, CoreMinutes
from necroscope.segment.frame import Frame
from necroscope.segment.journal_reader import JournalReader
from necroscope.segment.lock import lock_directory
from necroscope.segment.manifest import GAP_LIMIT, Manifest, merge_gaps, read_manifest
from necroscope.segment.recording import LIVE, SEALING, remove_segment, segment_start_ns
from necroscope.segment.spans import add_span
from necroscope.segment.table_writer import TableWriter
from necroscope.segment.versions import LAYOUTS, check_version, upgraded


def seal(live: Path) -> Path | None:
    """Seal a live segment, or finish an earlier try; None if somebody else is at it or nothing was recorded."""
    sealed = live.with_name(live.name.removesuffix(LIVE))
    try:
        lock = lock_directory(live)
    except FileNotFoundError:
        return sealed if sealed.is_dir() else None
    if lock is None:
        return None
    try:
        return _seal_locked(live, sealed)
    finally:
        os.close(lock)


def _seal_locked(live: Path, sealed: Path) -> Path | None:
    if not _is_sealed(sealed):
        if not JournalReader(live, 0).path.is_file():
            shutil.rmtree(live, ignore_errors=True)
            return None
        remove_segment(sealed)
        _write_and_rename(live, sealed)
    with contextlib.suppress(OSError):
        add_span(sealed.parent, sealed.name, read_manifest(sealed).reach)
    shutil.rmtree(live, ignore_errors=True)
    return sealed


def _write_and_rename(live: Path, sealed: Path) -> None:
    sealing = sealed.with_name(sealed.name + SEALING)
    shutil.rmtree(sealing, ignore_errors=True)
    sealing.mkdir(mode=0o700)
    writer = SegmentWriter(sealing)
    try:
        writer.write(live)
        sync_directory(sealing)
        sealing.rename(sealed)
    except BaseException:
        writer.abandon()
        shutil.rmtree(sealing, ignore_errors=True)
        raise
    sync_directory(sealed.parent)


def _is_sealed(path: Path) -> bool:
    try:
        read_manifest(path)
    except (CorruptData, OSError):
        return False
    return True


class SegmentWriter:
    """Streams a journal into the tables of a sealed segment and writes its manifest last."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._writers: dict[str, TableWriter] = {}
        self._gaps: list[Gap] = []
        self._minutes = CoreMinutes()

    def write(self, live: Path) -> None:
        name = live.name.removesuffix(LIVE)
        reader = JournalReader(live, segment_start_ns(name))
        for frame in reader.advance():
            self._take(reader, frame)
        self._add_gaps(reader.gaps)
        self._add_core_minutes()
        header = reader.header
        Manifest(
            schema=SCHEMA_VERSION,
            segment=name,
            node=header.node if header else "",
            boot_id=header.boot_id if header else "",
            from_ns=header.from_ns if header else segment_start_ns(name),
            to_ns=reader.last_ns,
            cpus=header.cpus if header else None,
            tables={name: writer.close() for name, writer in self._writers.items()},
            gaps=self._gaps if len(self._gaps) <= GAP_LIMIT else merge_gaps(self._gaps),
            gaps_are_merged=len(self._gaps) > GAP_LIMIT,
            lost_samples=sum(gap.lost or 0 for gap in self._gaps if gap.table == "samples"),
            idle_samples=reader.idle_samples,
        ).write(self._directory)

    def abandon(self) -> None:
        for writer in self._writers.values():
            writer.abandon()

    def _take(self, reader: JournalReader, frame: Frame) -> None:
        header = frame.header
        check_version(header.schema)
        table = LAYOUTS.get(header.schema, {}).get(header.name)
        if table is None or not header.rows:
            if table is None:
                reader.distrust(frame, f"schema {header.schema} has no table {header.name}")
            return
        try:
            rows = upgraded(header.name, pa.Table.from_batches([batch_of(table, frame)]), header.schema)
        except CorruptData as error:
            reader.distrust(frame, error.facts)
            return
        if header.name == "gaps":
            self._gaps += gaps_of(rows)
        elif header.name == "cores":
            self._minutes.add_cores(_tuples(rows, CORE_COLUMNS))
        elif header.name == "softirq_delay":
            self._minutes.add_delays(_tuples(rows, DELAY_COLUMNS))
        self._add(header.name, rows, (header.from_ns, header.to_ns))

    def _add(self, name: str, rows: pa.Table, span_ns: tuple[int, int]) -> None:
        writer = self._writers.get(name)
        if writer is None:
            writer = self._writers[name] = TableWriter(TABLES[name], self._directory / f"{name}.parquet")
        for batch in rows.to_batches():
            writer.add(batch, *span_ns)

    def _add_gaps(self, found: list[Gap]) -> None:
        """Gaps that the journal did not know of: the stretches of it that cannot be read."""
        if found:
            rows = pa.Table.from_batches([batch_from_rows(TABLES["gaps"], [gap.row() for gap in found])])
            self._add("gaps", rows, (min(gap.from_ns for gap in found), max(gap.to_ns for gap in found)))
            self._gaps += found

    def _add_core_minutes(self) -> None:
        found = self._minutes.rows()
        if found:
            rows = pa.Table.from_batches([batch_from_rows(TABLES["core_minutes"], found)])
            self._add("core_minutes", rows, (rows["time"][0].as_py(), rows["time"][-1].as_py()))


def _tuples(rows: pa.Table, columns: Sequence[str]) -> Iterator[tuple[int, ...]]:
    """Rows of these columns, without those that have a null."""
    chosen = [rows.column(name) for name in columns]
    found = zip(*(column.to_pylist() for column in chosen), strict=True)
    return (row for row in found if None not in row) if any(column.null_count for column in chosen) else found
