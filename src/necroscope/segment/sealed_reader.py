"""A sealed segment as a reader sees it: the manifest at once, a table's footer when asked for, row
groups only in the window.
"""

import os
import zlib
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from necroscope.errors import CorruptData, RecordingError
from necroscope.model.reading import Gap
from necroscope.model.tables import SCHEMA_VERSION, Table, Type
from necroscope.segment.arrow import gaps_of, schema_of
from necroscope.segment.checksum import open_regular
from necroscope.segment.kept_rows import KeptRows
from necroscope.segment.manifest import ByteRange, Manifest, TableEntry, read_manifest
from necroscope.segment.parquet_claims import RowGroup, decoded_bytes, read_footer
from necroscope.segment.recording import segment_bytes, segment_start_ns
from necroscope.segment.spans import read_spans
from necroscope.segment.versions import LAYOUTS
from necroscope.segment.window import Window, check_size, overlaps, rows_within

# A table's file of which only checked bytes are given out; each checked stretch is read at most
# once, when asked for.


class VerifiedFile:
    """`content` is as long as the file and holds what was checked so far; the rest is zeros, which
    take no memory.

    Not mapped: a file that is cut while it is mapped kills its reader.
    """

    def __init__(self, path: Path, entry: TableEntry) -> None:
        """CorruptData if the file has another size than the manifest says."""
        self._name = path.name
        self._ranges = _tiling(path.name, entry)
        self._checked: set[int] = set()
        self.bytes_read = 0
        try:
            self._file = open_regular(path)
        except OSError as error:
            raise CorruptData(f"{path.name}: {error.strerror}") from error
        if os.fstat(self._file.fileno()).st_size != entry.bytes:
            self._file.close()
            raise CorruptData(f"{path.name} has another size than its manifest says")
        self.content = np.zeros(entry.bytes, dtype=np.uint8)

    def footer(self) -> bytes:
        return bytes(self._check(len(self._ranges) - 1))

    def check_group(self, group: int) -> None:
        """Bring in the stretch of a row group; CorruptData if it is not what was written."""
        if not 0 <= group < len(self._ranges) - 2:
            raise CorruptData(f"the manifest has no range for row group {group} of {self._name}")
        self._check(group + 1)

    def close(self) -> None:
        self._file.close()

    def _check(self, index: int) -> memoryview:
        offset, length, crc = self._ranges[index]
        stretch = self.content.data[offset : offset + length]
        if index not in self._checked:
            try:
                size = os.preadv(self._file.fileno(), [stretch], offset)
            except OSError as error:
                raise CorruptData(
                    f"{self._name} cannot be read at byte {offset}: {error.strerror}"
                ) from None
            self.bytes_read += size
            if size != length or zlib.crc32(stretch) != crc:
                stretch[:] = bytes(length)
                raise CorruptData(
                    f"{self._name} fails its checksum between bytes {offset} and {offset + length}"
                )
            self._checked.add(index)
        return stretch


def _tiling(name: str, entry: TableEntry) -> list[ByteRange]:
    """The ranges, if they lie one after the other and cover the file: a byte outside of them would
    go unchecked.
    """
    position = 0
    for offset, length, _ in entry.ranges:
        if offset != position or length <= 0:
            raise CorruptData(f"the manifest's ranges do not cover {name}")
        position += length
    if position != entry.bytes or not entry.ranges:
        raise CorruptData(f"the manifest's ranges do not cover {name}")
    return entry.ranges


# This much is read faster than it is handed to threads.
_GROUPS_FOR_ONE_THREAD: Final = 2
# What a file may hold: this much, and this many times its own size. Equal rows take few bytes.
_ALWAYS_HELD_BYTES: Final = 8 << 20
_MOST_TIMES_ITS_SIZE: Final = 256
_NOT_READABLE: Final = (CorruptData, pa.ArrowException, OSError, ValueError, KeyError)


class SegmentGoneError(RecordingError):
    """The segment was removed, or sealed, while it was being read: list the segments again."""


class SealedSegment:
    """What is damaged is left out and becomes a gap; all else still answers."""

    def __init__(self, path: Path, kept: KeptRows | None = None) -> None:
        """`kept` has what was read before, for all segments of a recording."""
        self.path = path
        self.bytes_read = 0
        self._kept = kept
        self._damage: dict[tuple[str, int], Gap] = {}
        self._footers: dict[str, _Footer] = {}
        self._manifest = self._open_manifest()
        self.schema = self._manifest.schema
        self.cpus = self._manifest.cpus
        self.node = self._manifest.node
        self.idle_samples = self._manifest.idle_samples

    @property
    def span(self) -> tuple[int, int]:
        return self._manifest.from_ns, self._manifest.to_ns

    @property
    def reach(self) -> tuple[int, int]:
        return self._manifest.reach

    # A sealed segment never changes, and every answer asks what a recording of thousands of them
    # holds.
    @cached_property
    def tables(self) -> dict[str, int]:
        return {name: entry.rows for name, entry in self._manifest.tables.items()}

    @cached_property
    def bytes(self) -> int:
        return segment_bytes(self.path)

    def gaps(self) -> list[Gap]:
        recorded = self._manifest.gaps
        if self._manifest.gaps_are_merged:
            table = LAYOUTS[self.schema]["gaps"]
            recorded = [
                gap
                for rows in self.read(table, None, [c.name for c in table.columns])
                for gap in gaps_of(rows)
            ]
        return [*recorded, *self._damage.values()]

    def read(self, table: Table, window: Window, columns: Sequence[str]) -> Iterator[pa.Table]:
        """The rows in the window, by row group."""
        entry = self._manifest.tables.get(table.name)
        if entry is None or not overlaps(window, entry.from_ns, entry.to_ns):
            return
        known = self._find_kept(table.name, window, columns)
        if known is not None:
            yield rows_within(known, window)
            return
        try:
            file = VerifiedFile(self.path / f"{table.name}.parquet", entry)
        except CorruptData as error:
            self._raise_if_gone()
            self._note_damage(table.name, -1, entry, error)
            return
        try:
            yield from self._read_groups(file, table, window, columns)
        finally:
            self.bytes_read += file.bytes_read
            file.close()

    def _read_groups(
        self, file: VerifiedFile, table: Table, window: Window, columns: Sequence[str]
    ) -> Iterator[pa.Table]:
        try:
            categories = {column.name for column in table.columns if column.type is Type.CATEGORY}
            footer, claimed, parts = self._footer(file, table.name)
            sizes: dict[int, int] = {}
            for index in self._parts_within(parts, window):
                try:
                    file.check_group(index)
                    sizes[index] = decoded_bytes(
                        file.content.data, claimed[index], columns, categories
                    )
                except CorruptData as error:
                    self._note_damage(table.name, index, parts[index], error)
            checked = list(sizes)
            _check_size(sum(sizes.values()), len(file.content))
            source = pa.BufferReader(pa.py_buffer(file.content))
            parquet = pq.ParquetFile(
                source, metadata=footer, read_dictionary=list(categories), pre_buffer=False
            )
        except _NOT_READABLE as error:
            self._note_damage(table.name, -1, self._manifest.tables[table.name], error)
            return
        schema = pa.schema([schema_of(table).field(name) for name in columns])
        # Together, because then columns come in one piece; one by one only to find out which of
        # them cannot be decoded.
        together = [checked] if checked else []
        while together:
            groups = together.pop()
            try:
                rows = parquet.read_row_groups(
                    groups, columns=list(columns), use_threads=len(groups) > _GROUPS_FOR_ONE_THREAD
                )
                if not rows.schema.equals(schema):
                    rows = rows.select(list(columns)).cast(schema)
                if self._kept is not None:
                    self._kept.keep((self.path, table.name, tuple(groups), tuple(columns)), rows)
                yield rows_within(rows, window)
            except _NOT_READABLE as error:
                if len(groups) == 1:
                    self._note_damage(table.name, groups[0], parts[groups[0]], error)
                else:
                    together = [[group] for group in reversed(groups)]

    def _find_kept(self, table: str, window: Window, columns: Sequence[str]) -> pa.Table | None:
        if self._kept is None or table not in self._footers:
            return None
        groups = tuple(self._parts_within(self._footers[table].parts, window))
        return self._kept.find((self.path, table, groups, tuple(columns)))

    def _parts_within(self, parts: Sequence[TableEntry], window: Window) -> list[int]:
        return [
            index for index, part in enumerate(parts) if overlaps(window, part.from_ns, part.to_ns)
        ]

    def _footer(self, file: VerifiedFile, name: str) -> "_Footer":
        """Parsed from its own checked stretch: pyarrow would read 64 KiB from the end of the file
        to find it.
        """
        if name not in self._footers:
            footer = file.footer()
            groups = read_footer(footer)
            entry = self._manifest.tables[name]
            self._footers[name] = _Footer(
                pq.read_metadata(pa.BufferReader(footer)),
                groups,
                [_part(group, entry) for group in groups],
            )
        return self._footers[name]

    def _open_manifest(self) -> Manifest:
        try:
            return read_manifest(self.path)
        except FileNotFoundError:
            self._raise_if_gone()
            cause = "manifest.json is missing"
        except CorruptData as error:
            cause = error.facts
        start_ns = segment_start_ns(self.path.name)
        from_ns, to_ns = read_spans(self.path.parent).get(self.path.name, (start_ns, start_ns))
        self._damage["*", -1] = Gap("*", from_ns, to_ns, f"segment {self.path.name}: {cause}")
        return Manifest(SCHEMA_VERSION, self.path.name, "", "", from_ns, to_ns, None, {})

    def _note_damage(self, table: str, group: int, part: TableEntry, error: Exception) -> None:
        from_ns, to_ns = (part.from_ns, part.to_ns) if part.to_ns else self.span
        self._damage[table, group] = Gap(
            table, from_ns, to_ns, f"segment {self.path.name}: {error}", lost=part.rows
        )

    def _raise_if_gone(self) -> None:
        if not self.path.is_dir():
            raise SegmentGoneError(f"segment {self.path.name} is gone") from None


class _Footer(NamedTuple):
    for_arrow: Any
    groups: list[RowGroup]
    # The same as if each were a table of its own.
    parts: list[TableEntry]


def _part(group: RowGroup, entry: TableEntry) -> TableEntry:
    """Without statistics it may hold any time of its table."""
    return TableEntry(group.rows, 0, *(group.span or (entry.from_ns, entry.to_ns)), [])


def _check_size(size_bytes: int, file_bytes: int) -> None:
    check_size(size_bytes)
    if size_bytes > _ALWAYS_HELD_BYTES + _MOST_TIMES_ITS_SIZE * file_bytes:
        raise CorruptData(f"a file of {file_bytes:,} bytes says that it holds {size_bytes:,}")
