"""A sealed table: Parquet in row groups sorted by time, written through a sink that keeps the
checksum of each stretch.
"""

import contextlib
import os
import zlib
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from necroscope.model.tables import Column, Table, Type
from necroscope.segment.arrow import schema_of
from necroscope.segment.manifest import ByteRange, TableEntry

GROUP_ROWS: Final = 32_768
# A group is written before it is much larger: Arrow needs several times its bytes to encode it.
_GROUP_BYTES: Final = 1 << 20
# A batch takes a kilobyte for each of its columns, however few rows it has: small ones are joined
# before they are many.
_SMALL_BATCHES: Final = 64
_SMALL_ROWS: Final = 4096
# More stretches than these are sorted by Arrow.
_MOST_STRETCHES: Final = 1000


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
        """Let go of the file as it is; pyarrow still writes a footer when its writer goes, to
        nowhere.
        """
        with contextlib.suppress(OSError):
            self._file.close()


class TableWriter:
    """Gathers batches and writes them as a row group before they are too many, so that memory holds
    one row group of a table.
    """

    def __init__(self, table: Table, path: Path) -> None:
        self._table = table
        self._pieces: list[pa.RecordBatch] = []
        self._rows_in_group = 0
        self._small: list[pa.RecordBatch] = []
        self._small_rows = 0
        self._rows = 0
        self._span_ns: tuple[int, int] | None = None
        self._sink = ChecksummedSink(path)
        try:
            self._parquet = _parquet_writer(self._sink, table)
        except BaseException:
            self._sink.abandon()
            raise
        self._sink.end_range()

    def add(self, batch: pa.RecordBatch, from_ns: int, to_ns: int) -> None:
        first_ns, last_ns = self._span_ns or (from_ns, to_ns)
        self._span_ns = min(first_ns, from_ns), max(last_ns, to_ns)
        self._rows += batch.num_rows
        for start in range(0, batch.num_rows, GROUP_ROWS):
            self._add_part(batch.slice(start, GROUP_ROWS) if batch.num_rows > GROUP_ROWS else batch)

    def close(self) -> TableEntry:
        self._write_group()
        self._parquet.close()
        self._sink.end_range()
        self._sink.close()
        return TableEntry(
            self._rows, self._sink.size_bytes, *(self._span_ns or (0, 0)), self._sink.ranges
        )

    def abandon(self) -> None:
        self._sink.abandon()

    def _add_part(self, batch: pa.RecordBatch) -> None:
        if self._rows_in_group + batch.num_rows > GROUP_ROWS:
            self._write_group()
        self._rows_in_group += batch.num_rows
        self._small.append(batch)
        self._small_rows += batch.num_rows
        if len(self._small) >= _SMALL_BATCHES or self._small_rows >= _SMALL_ROWS:
            self._join_small()
            if sum(piece.nbytes for piece in self._pieces) >= _GROUP_BYTES:
                self._write_group()

    def _join_small(self) -> None:
        if self._small:
            self._pieces += _in_one_piece(self._small).to_batches()
            self._small, self._small_rows = [], 0

    def _write_group(self) -> None:
        self._join_small()
        if self._pieces:
            rows = _in_one_piece(self._pieces)
            self._pieces, self._rows_in_group = [], 0
            self._parquet.write_table(
                _sort_by_time(rows) if self._table.is_timed else rows, row_group_size=GROUP_ROWS
            )
            self._sink.end_range()


def _parquet_writer(sink: ChecksummedSink, table: Table) -> Any:
    """What pyarrow.parquet.ParquetWriter wraps: that module loads file systems and OpenSSL, 5 MB
    and 5 ms of each sealing child.

    It is not of the public API: where another pyarrow has it otherwise, the public one writes the
    same file.
    """
    options, schema = parquet_options(table), schema_of(table)
    try:
        from pyarrow._parquet import ParquetWriter  # noqa: PLC0415 - may not exist

        return ParquetWriter(sink, schema, writer_engine_version="V2", **options)
    except (ImportError, TypeError, ValueError):
        from pyarrow.parquet import ParquetWriter  # noqa: PLC0415 - costs what the docstring says

        return ParquetWriter(sink, schema, **options)


def _in_one_piece(batches: list[pa.RecordBatch]) -> pa.Table:
    """In one piece, and each category column with one dictionary: Parquet gives up its own where
    they differ.
    """
    return pa.Table.from_batches(batches).unify_dictionaries().combine_chunks()


def _sort_by_time(rows: pa.Table) -> pa.Table:
    """By time, without numpy, and mostly without pyarrow.compute, which takes 10 MB.

    What a recorder writes is sorted, or made of few sorted stretches: those are put in order as
    they are.
    """
    times = [time_ns for chunk in rows.column("time").chunks for time_ns in _int64(chunk)]
    if times == sorted(times):
        return rows
    order = sorted(range(len(times)), key=times.__getitem__)
    starts = [
        place for place, (one, next_one) in enumerate(pairwise(order), 1) if next_one != one + 1
    ]
    if len(starts) > _MOST_STRETCHES:
        return rows.sort_by("time")
    stretches = pairwise([0, *starts, len(order)])
    return pa.concat_tables(
        rows.slice(order[start], end - start) for start, end in stretches
    ).combine_chunks()


def _int64(values: pa.Array) -> list[int]:
    return (
        memoryview(values.buffers()[1])
        .cast("q")[values.offset : values.offset + len(values)]
        .tolist()
    )


def parquet_options(table: Table) -> dict[str, Any]:
    """Chosen by measuring, see docs/format.md; a stored Arrow schema alone would be as long as most
    tables of a segment.
    """
    deltas = {
        column.name: "DELTA_BINARY_PACKED" for column in table.columns if _is_delta(table, column)
    }
    return {
        "compression": "zstd",
        "compression_level": 3,
        "use_dictionary": [
            _path(column)
            for column in table.columns
            if column.name not in deltas and column.type is not Type.UTF8
        ],
        "column_encoding": deltas,
        "write_statistics": [
            column.name for column in table.columns if column.name in ("time", "cpu")
        ],
        "write_page_checksum": True,
        "store_schema": False,
        "version": "2.6",
        "data_page_version": "1.0",
        "use_compliant_nested_type": True,
    }


def _is_delta(table: Table, column: Column) -> bool:
    """Times and counters are long and rarely twice the same, ids climb; modes of a core are
    multiples of a kernel tick.

    A derived table has few rows: dictionaries of its shares would be as long as themselves.
    """
    if column.type is Type.INT64:
        return table.name != "cores" or column.name in ("time", "elapsed_ns")
    return (column.type is Type.INT32 and not table.is_timed) or (
        column.type is Type.INT16 and table.is_derived
    )


def _path(column: Column) -> str:
    return f"{column.name}.list.element" if column.type is Type.INT32_LIST else column.name
