"""A sealed table: Parquet in row groups sorted by time, written through a sink that keeps the checksum of each stretch."""

import contextlib
import os
import zlib
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from necroscope.model.tables import Column, Table, Type
from necroscope.segment.arrow import schema_of
from necroscope.segment.manifest import ByteRange, TableEntry

GROUP_ROWS: Final = 32_768


class ChecksummedSink:
    """A file for Arrow to write to; `end_range` closes the stretch written since the last one."""

    mode = "wb"

    def __init__(self, path: Path) -> None:
        self.ranges: list[ByteRange] = []
        self.size_bytes = 0
        self._range_from = 0
        self._crc = 0
        self._file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")

    def write(self, data: Any) -> int:
        if self._file.closed:
            return len(data)
        self._crc = zlib.crc32(data, self._crc)
        self.size_bytes += len(data)
        return self._file.write(data)

    def end_range(self) -> None:
        self.ranges.append((self._range_from, self.size_bytes - self._range_from, self._crc))
        self._range_from, self._crc = self.size_bytes, 0

    def flush(self) -> None:
        self._file.flush()

    def tell(self) -> int:
        return self.size_bytes

    @property
    def closed(self) -> bool:
        return self._file.closed

    def close(self) -> None:
        if not self._file.closed:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()

    def abandon(self) -> None:
        """Let go of the file as it is; pyarrow still writes a footer when its writer goes, to nowhere."""
        with contextlib.suppress(OSError):
            self._file.close()


class TableWriter:
    """Gathers batches and writes a row group whenever one is full, so that memory holds one row group of each table."""

    def __init__(self, table: Table, path: Path) -> None:
        self._table = table
        self._pending: list[pa.RecordBatch] = []
        self._pending_rows = 0
        self._rows = 0
        self._span_ns: tuple[int, int] | None = None
        self._sink = ChecksummedSink(path)
        try:
            self._parquet = pq.ParquetWriter(self._sink, schema_of(table), **parquet_options(table))
        except BaseException:
            self._sink.abandon()
            raise
        self._sink.end_range()

    def add(self, batch: pa.RecordBatch, from_ns: int, to_ns: int) -> None:
        self._pending.append(batch)
        self._pending_rows += batch.num_rows
        self._rows += batch.num_rows
        first_ns, last_ns = self._span_ns or (from_ns, to_ns)
        self._span_ns = min(first_ns, from_ns), max(last_ns, to_ns)
        while self._pending_rows >= GROUP_ROWS:
            self._write_group()

    def close(self) -> TableEntry:
        if self._pending_rows:
            self._write_group()
        self._parquet.close()
        self._sink.end_range()
        self._sink.close()
        return TableEntry(self._rows, self._sink.size_bytes, *(self._span_ns or (0, 0)), self._sink.ranges)

    def abandon(self) -> None:
        self._sink.abandon()

    def _write_group(self) -> None:
        rows = pa.Table.from_batches(self._pending).unify_dictionaries().combine_chunks()
        group, rest = rows.slice(0, GROUP_ROWS), rows.slice(GROUP_ROWS)
        self._pending, self._pending_rows = rest.to_batches(), rest.num_rows
        if self._table.is_timed and not _is_sorted(group.column("time")):
            group = group.sort_by("time")
        self._parquet.write_table(group, row_group_size=GROUP_ROWS)
        self._sink.end_range()


def parquet_options(table: Table) -> dict[str, Any]:
    """Chosen by measuring, see docs/format.md; a stored Arrow schema alone would be as long as most tables of a segment."""
    deltas = {column.name: "DELTA_BINARY_PACKED" for column in table.columns if _is_delta(table, column)}
    return {
        "compression": "zstd",
        "compression_level": 3,
        "use_dictionary": [
            _path(column) for column in table.columns if column.name not in deltas and column.type is not Type.UTF8
        ],
        "column_encoding": deltas,
        "write_statistics": [column.name for column in table.columns if column.name in ("time", "cpu")],
        "write_page_checksum": True,
        "store_schema": False,
    }


def _is_delta(table: Table, column: Column) -> bool:
    """Times and counters are long and rarely twice the same, ids climb; modes of a core are multiples of a kernel tick.

    A derived table has few rows: dictionaries of its shares would be as long as themselves.
    """
    if column.type is Type.INT64:
        return table.name != "cores" or column.name in ("time", "elapsed_ns")
    return (column.type is Type.INT32 and not table.is_timed) or (column.type is Type.INT16 and table.is_derived)


def _path(column: Column) -> str:
    return f"{column.name}.list.element" if column.type is Type.INT32_LIST else column.name


def _is_sorted(times: pa.ChunkedArray) -> bool:
    """Without numpy, which the sealing child does not load; sorting what is sorted takes one pass."""
    for chunk in times.chunks:
        values = memoryview(chunk.buffers()[1]).cast("q")[chunk.offset : chunk.offset + len(chunk)].tolist()
        if values != sorted(values):
            return False
    return len(times.chunks) <= 1
