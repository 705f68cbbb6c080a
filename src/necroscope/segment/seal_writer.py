"""Turns a live segment into a sealed one, in steps such that a crash between any two leaves a
segment that can be read.

The journal is streamed into `.sealing`, which is made durable and renamed to the segment's name;
only then the journal goes.
"""

import contextlib
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from necroscope.errors import CorruptData
from necroscope.model.reading import Gap, merge_gaps
from necroscope.model.tables import SCHEMA_VERSION, TABLES
from necroscope.segment.arrow import batch_from_rows, batch_of, gaps_of
from necroscope.segment.checksum import sync_directory
from necroscope.segment.core_minutes import CORE_COLUMNS, DELAY_COLUMNS, CoreMinutes
from necroscope.segment.journal_reader import JournalReader
from necroscope.segment.lock import lock_directory
from necroscope.segment.manifest import GAP_LIMIT, Manifest, TableEntry, read_manifest
from necroscope.segment.recording import LIVE, SEALING, remove_segment, segment_start_ns
from necroscope.segment.spans import add_span
from necroscope.segment.table_writer import TableWriter
from necroscope.segment.versions import LAYOUTS, check_version, upgrade_rows

# Rows, and their first and last time.
_TimedBatch = tuple[pa.RecordBatch, int, int]


def seal(live: Path) -> Path | None:
    """Seal a live segment, or finish an earlier try; None if another process is at it or nothing
    was recorded.
    """
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
    """Writes the tables of a sealed segment from its journal, one after another, and its manifest
    last.

    The first pass over the journal finds the blocks of each table, the second reads them table by
    table: memory holds one row group of one table, however long the segment is.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._writer: TableWriter | None = None
        self._entries: dict[str, TableEntry] = {}
        self._gaps: list[Gap] = []
        self._minutes = CoreMinutes()

    def write(self, live: Path) -> None:
        name = live.name.removesuffix(LIVE)
        reader = JournalReader(live, segment_start_ns(name))
        offsets = _offsets_by_table(reader)
        recorded_gaps = offsets.pop("gaps", [])
        for table in offsets:
            self._write_table(table, self._read_batches(table, reader, offsets[table]))
        self._write_table("gaps", self._all_gaps(reader, recorded_gaps))
        self._write_table("core_minutes", self._core_minutes())
        header = reader.header
        Manifest(
            schema=SCHEMA_VERSION,
            segment=name,
            node=header.node if header else "",
            boot_id=header.boot_id if header else "",
            from_ns=header.from_ns if header else segment_start_ns(name),
            to_ns=reader.last_ns,
            cpus=header.cpus if header else None,
            tables=self._entries,
            gaps=self._gaps if len(self._gaps) <= GAP_LIMIT else merge_gaps(self._gaps),
            gaps_are_merged=len(self._gaps) > GAP_LIMIT,
            lost_samples=sum(gap.lost or 0 for gap in self._gaps if gap.table == "samples"),
            idle_samples=reader.idle_samples,
        ).write(self._directory)

    def abandon(self) -> None:
        if self._writer is not None:
            self._writer.abandon()

    def _write_table(self, name: str, batches: Iterable[_TimedBatch]) -> None:
        """A table without rows has no file."""
        for batch, from_ns, to_ns in batches:
            if self._writer is None:
                self._writer = TableWriter(TABLES[name], self._directory / f"{name}.parquet")
            self._writer.add(batch, from_ns, to_ns)
        if self._writer is not None:
            self._entries[name] = self._writer.close()
            self._writer = None

    def _read_batches(
        self, name: str, reader: JournalReader, offsets: Sequence[int]
    ) -> Iterator[_TimedBatch]:
        for block in reader.read_again(offsets):
            header = block.header
            try:
                batch = batch_of(LAYOUTS[header.schema][name], block)
            except CorruptData as error:
                reader.distrust(block, error.facts)
                continue
            for rows in upgrade_rows(
                name, pa.Table.from_batches([batch]), header.schema
            ).to_batches():
                if name == "cores":
                    self._minutes.add_cores(_tuples(rows, CORE_COLUMNS))
                elif name == "softirq_delay":
                    self._minutes.add_delays(_tuples(rows, DELAY_COLUMNS))
                yield rows, header.from_ns, header.to_ns

    def _all_gaps(self, reader: JournalReader, offsets: Sequence[int]) -> Iterator[_TimedBatch]:
        """Those recorded, and then those that reading the whole journal found: the stretches of it
        that cannot be read.
        """
        for rows, from_ns, to_ns in self._read_batches("gaps", reader, offsets):
            self._gaps += gaps_of(rows)
            yield rows, from_ns, to_ns
        found = reader.gaps
        if found:
            self._gaps += found
            rows = batch_from_rows(TABLES["gaps"], [gap.row() for gap in found])
            yield rows, min(gap.from_ns for gap in found), max(gap.to_ns for gap in found)

    def _core_minutes(self) -> Iterator[_TimedBatch]:
        found = self._minutes.rows()
        if found:
            rows = batch_from_rows(TABLES["core_minutes"], found)
            yield rows, rows["time"][0].as_py(), rows["time"][-1].as_py()


def _offsets_by_table(reader: JournalReader) -> dict[str, list[int]]:
    """Where the journal has rows of each table; only those that this version knows how to read."""
    offsets: dict[str, list[int]] = {}
    for block in reader.advance():
        header = block.header
        check_version(header.schema)
        if header.name not in LAYOUTS[header.schema]:
            reader.distrust(block, f"schema {header.schema} has no table {header.name}")
        elif header.rows:
            offsets.setdefault(header.name, []).append(block.offset)
    return offsets


def _tuples(rows: pa.RecordBatch, columns: Sequence[str]) -> Iterator[tuple[int, ...]]:
    """Rows of these columns, without those that have a null."""
    chosen = [rows.column(name) for name in columns]
    found = zip(*(column.to_pylist() for column in chosen), strict=True)
    return (
        (row for row in found if None not in row)
        if any(column.null_count for column in chosen)
        else found
    )
