"""Where the tables of an imported segment are written: sealed, as a recording keeps them, or in a
journal, for a window that is asked for once and thrown away.

A journal needs no Arrow, whose loading is much of what a few seconds of a capture take to import.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from necroscope.interchange.import_options import IMPORTED_BOOT
from necroscope.model.reading import ColumnBuffers, Gap, merge_gaps
from necroscope.model.span import Extent
from necroscope.model.tables import SCHEMA_VERSION, TABLES
from necroscope.segment.journal import JournalWriteError, JournalWriter, SegmentHeader
from necroscope.segment.manifest import GAP_LIMIT, Manifest
from necroscope.segment.recording import LIVE

if TYPE_CHECKING:
    from necroscope.segment.table_writer import TableWriter


class SegmentEnd(NamedTuple):
    """What is known of a segment once all its rows are written."""

    node: str
    cpus: int | None
    span: Extent
    gaps: list[Gap]
    idle_samples: int


class SegmentFiles(Protocol):
    """Takes columns, table by table, until it is closed or abandoned."""

    def add(self, table: str, columns: ColumnBuffers, span: Extent) -> None: ...

    def close(self, end: SegmentEnd) -> int:
        """The bytes of its files."""

    def abandon(self) -> None: ...


class SealedFiles:
    """Parquet and a manifest."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writers: dict[str, TableWriter] = {}
        path.mkdir(mode=0o700)

    def add(self, table: str, columns: ColumnBuffers, span: Extent) -> None:
        from necroscope.segment.arrow import batch_from_columns  # noqa: PLC0415  (loading Arrow is the writing thread's)
        from necroscope.segment.table_writer import TableWriter  # noqa: PLC0415

        if table not in self._writers:
            self._writers[table] = TableWriter(TABLES[table], self._path / f"{table}.parquet")
        self._writers[table].add(batch_from_columns(TABLES[table], columns), *span)

    def close(self, end: SegmentEnd) -> int:
        entries = {name: writer.close() for name, writer in self._writers.items()}
        manifest = Manifest(
            SCHEMA_VERSION,
            self._path.name,
            end.node,
            IMPORTED_BOOT,
            *end.span,
            end.cpus,
            entries,
            end.gaps if len(end.gaps) <= GAP_LIMIT else merge_gaps(end.gaps),
            len(end.gaps) > GAP_LIMIT,
            sum(gap.lost or 0 for gap in end.gaps if gap.table == "samples"),
            end.idle_samples,
        )
        manifest.write(self._path)
        return sum(entry.bytes for entry in entries.values())

    def abandon(self) -> None:
        for writer in self._writers.values():
            writer.abandon()


class JournalFiles:
    """A journal, as a recorder leaves it before the seal."""

    def __init__(self, path: Path, node: str, start_ns: int) -> None:
        header = SegmentHeader(path.name, node, IMPORTED_BOOT, start_ns, cpus=0)
        with _as_of_the_disk():
            self._journal = JournalWriter(path.with_name(path.name + LIVE), header, durable=False)

    def add(self, table: str, columns: ColumnBuffers, _span: Extent) -> None:
        self._journal.append_columns(table, columns)
        # Stacks and frames wait for the samples that they are of.
        if TABLES[table].is_timed:
            with _as_of_the_disk():
                self._journal.flush()

    def close(self, end: SegmentEnd) -> int:
        self._journal.idle_samples = end.idle_samples
        self._journal.end(*end.span, end.cpus or 0)
        with _as_of_the_disk():
            self._journal.close()
        return self._journal.size_bytes

    def abandon(self) -> None:
        self._journal.abandon()


@contextlib.contextmanager
def _as_of_the_disk() -> Iterator[None]:
    """Its way out is a recorder's: an import has one of its own."""
    try:
        yield
    except JournalWriteError as error:
        raise OSError(error.error_number, os.strerror(error.error_number or 0)) from None
