"""A block of the journal: rows of one table, or a note, behind a header with a CRC32 over
everything in it.

    magic     4s   ff 4e 43 4a; 0xff occurs in no UTF-8 text, so text in a payload never looks
                   like a block
    crc32     u32  of the header from here on and the payload
    payload   u32  bytes of payload as stored
    raw       u32  bytes of payload after inflating
    rows      u32
    schema    u16  schema version of the columns
    kind      u8   0 rows, 1 note (JSON)
    deflated  u8   1 if the payload is a zlib stream
    from, to  i64  first and last time of the rows in ns UTC, 0 and 0 for tables without time
    name      16s  table (or note), padded with zeros

The payload of rows is the length of each buffer (u32), then the buffers themselves, lengths and
each buffer padded to 8 bytes. The buffers of each column are those of `columns.py`, columns in the
order of the table.
"""

import json
import struct
import zlib
from array import array
from collections.abc import Iterable, Mapping
from itertools import chain, groupby
from typing import Any, Final, NamedTuple

from necroscope.errors import CorruptData
from necroscope.model.reading import ColumnBuffers, Rows
from necroscope.model.tables import SCHEMA_VERSION, Table, Type
from necroscope.segment.columns import BUFFER_COUNT, decode_column, encode_column

MAGIC: Final = b"\xffNCJ"
RAW_LIMIT: Final = 64 << 20
_NOTE_LIMIT: Final = 1 << 20
KIND_ROWS: Final = 0
KIND_NOTE: Final = 1
_PREFIX: Final = struct.Struct("<4sI")
_HEADER: Final = struct.Struct("<IIIHBBqq16s")
HEADER_BYTES: Final = _PREFIX.size + _HEADER.size
# Below this, starting a zlib stream (11 us, 40 where others' work has taken the caches) costs more
# than the bytes it saves are worth: a flush writes whole pages anyway.
_DEFLATE_FROM_BYTES: Final = 4096
# Columns of each table by runs of one type: first and end of each.
_RUNS: Final[dict[str, list[tuple[Type, int, int]]]] = {}


class BlockHeader(NamedTuple):
    name: str
    kind: int
    rows: int
    from_ns: int
    to_ns: int
    schema: int
    is_deflated: bool
    payload_bytes: int
    raw_bytes: int

    @property
    def block_bytes(self) -> int:
        return HEADER_BYTES + self.payload_bytes


class Block(NamedTuple):
    """A block whose checksum was right."""

    header: BlockHeader
    offset: int
    payload: bytes

    def raw(self) -> bytes:
        """The payload as it was before deflating; CorruptData if it is not what the header says."""
        raw = (
            _inflate(self.payload, self.header.raw_bytes)
            if self.header.is_deflated
            else self.payload
        )
        if len(raw) != self.header.raw_bytes:
            raise CorruptData(
                f"a block of {self.header.name} holds {len(raw)} bytes instead of"
                f" {self.header.raw_bytes}"
            )
        return raw

    def note(self) -> dict[str, Any]:
        if self.header.raw_bytes > _NOTE_LIMIT:
            raise CorruptData(f"note {self.header.name} has {self.header.raw_bytes} bytes")
        try:
            values = json.loads(self.raw())
        except (ValueError, RecursionError) as error:
            raise CorruptData(f"note {self.header.name} is not JSON: {error}") from None
        return values if isinstance(values, dict) else {}


def encode_block(table: Table, rows: Rows) -> bytes:
    """All rows in one block; never raises for the values in them."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(table.columns)
    lengths: list[int] = []
    parts = [b""]
    for kind, first, end in _runs(table):
        words = _words(columns[first:end]) if kind is Type.INT64 else None
        if words is not None:
            lengths += (0, 8 * len(rows)) * (end - first)
            parts.append(words)
        else:
            buffers = [
                buffer for values in columns[first:end] for buffer in encode_column(kind, values)
            ]
            lengths += map(len, buffers)
            parts += map(_pad, buffers)
    parts[0] = _pad(struct.pack(f"<{len(lengths)}I", *lengths))
    raw = b"".join(parts)
    return _pack(table.name, KIND_ROWS, len(rows), _span(table, len(rows), lengths, raw), raw)


def encode_columns(table: Table, columns: ColumnBuffers) -> bytes:
    """Columns that are buffers already, in one block."""
    lengths = list(map(len, columns.buffers))
    raw = b"".join([_pad(struct.pack(f"<{len(lengths)}I", *lengths)), *map(_pad, columns.buffers)])
    return _pack(
        table.name, KIND_ROWS, columns.count, _span(table, columns.count, lengths, raw), raw
    )


def encode_note(name: str, values: Mapping[str, object]) -> bytes:
    return _pack(name, KIND_NOTE, 0, (0, 0), json.dumps(values).encode())


def rows_of(table: Table, count: int, buffers: Iterable[memoryview]) -> Rows:
    """The rows that these buffers hold."""
    left = iter(buffers)
    columns = [
        decode_column(column.type, count, [next(left) for _ in range(BUFFER_COUNT[column.type])])
        for column in table.columns
    ]
    return list(zip(*columns, strict=True))


def payload_buffers(table: Table, raw: bytes) -> list[memoryview]:
    """The buffers of all columns in order, without copying."""
    count = sum(BUFFER_COUNT[column.type] for column in table.columns)
    lengths = struct.unpack_from(f"<{count}I", raw)
    view, offset, buffers = memoryview(raw), _round_up(4 * count), []
    for length in lengths:
        buffers.append(view[offset : offset + length])
        if len(buffers[-1]) != length:
            raise ValueError("a buffer reaches beyond the payload")
        offset += _round_up(length)
    return buffers


def parse_header(head: bytes) -> BlockHeader | None:
    """The header if these bytes can be one; its checksum is still to be tried with `is_intact`."""
    if len(head) < HEADER_BYTES or head[:4] != MAGIC:
        return None
    payload, raw, rows, schema, kind, deflated, from_ns, to_ns, name = _HEADER.unpack_from(
        head, _PREFIX.size
    )
    if raw > RAW_LIMIT:
        return None
    text = name.rstrip(b"\0").decode("ascii", "replace")
    return BlockHeader(text, kind, rows, from_ns, to_ns, schema, bool(deflated), payload, raw)


def is_intact(head: bytes, payload: bytes) -> bool:
    expected: int = _PREFIX.unpack_from(head)[1]
    return zlib.crc32(payload, zlib.crc32(head[_PREFIX.size : HEADER_BYTES])) == expected


def _pack(name: str, kind: int, rows: int, span_ns: tuple[int, int], raw: bytes) -> bytes:
    deflated = len(raw) >= _DEFLATE_FROM_BYTES
    payload = zlib.compress(raw, 1) if deflated else raw
    header = _HEADER.pack(
        len(payload), len(raw), rows, SCHEMA_VERSION, kind, deflated, *span_ns, name.encode("ascii")
    )
    return b"".join((_PREFIX.pack(MAGIC, zlib.crc32(payload, zlib.crc32(header))), header, payload))


def _runs(table: Table) -> list[tuple[Type, int, int]]:
    runs = _RUNS.get(table.name)
    if runs is None:
        runs = _RUNS[table.name] = []
        for kind, run in groupby(
            range(len(table.columns)), key=lambda place: table.columns[place].type
        ):
            places = list(run)
            runs.append((kind, places[0], places[-1] + 1))
    return runs


def _words(columns: list[tuple[Any, ...]]) -> bytes | None:
    """Columns of 64 bits one behind the other, in one loop of C; None if a value needs care."""
    try:
        return array("q", chain.from_iterable(columns)).tobytes()
    except (TypeError, OverflowError):
        return None


def _span(table: Table, rows: int, lengths: list[int], raw: bytes) -> tuple[int, int]:
    """First and last time, taken from what is stored; a gap lasts until its end, which is its
    second column.
    """
    if not rows or not table.is_timed:
        return 0, 0
    at = _round_up(4 * len(lengths)) + _round_up(lengths[0])
    times = memoryview(raw)[at : at + 8 * rows].cast("q").tolist()
    at += 8 * rows + _round_up(lengths[2])
    ends = (
        memoryview(raw)[at : at + 8 * rows].cast("q").tolist()
        if table.columns[1].name == "end"
        else times
    )
    return min(times), max(ends)


def _inflate(payload: bytes, limit: int) -> bytes:
    inflater = zlib.decompressobj()
    try:
        return inflater.decompress(payload, limit + 1)
    except zlib.error as error:
        raise CorruptData(f"a block cannot be inflated: {error}") from None


def _pad(data: bytes) -> bytes:
    return data + bytes(-len(data) % 8)


def _round_up(length: int) -> int:
    return length + -length % 8
