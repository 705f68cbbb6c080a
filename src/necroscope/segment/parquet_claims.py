"""What a Parquet file says of itself, looked at before Arrow reads it: its footer, and the headers
of its pages.

Arrow's Python ends the process on a footer that contradicts itself: its accessors of column chunks
are declared as functions that never throw, and C++ throws there (pyarrow/includes/libparquet.pxd,
version 26: `ColumnChunk`, `statistics`, `schema`). So those are never called: what they would tell
is read here. And a file of a few kilobytes may stand for any amount of memory: one text a million
times, or a page that inflates. What decoding takes is known from the headers of its pages.

https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from necroscope.errors import CorruptData
from necroscope.segment.thrift import Bytes, Structure, read_structure

# Of the largest nodes' samples: 400 row groups of eight columns are 0.3 MB.
_MOST_FOOTER_BYTES: Final = 4 << 20
_MOST_PAGE_BYTES: Final = 64 << 20
# A list of numbers is the deepest column: its name, `list`, `element`.
_DEEPEST: Final = 3
_MAGIC: Final = b"PAR1"
_LENGTH_AND_MAGIC_BYTES: Final = 4 + len(_MAGIC)

_BOOLEAN, _INT32, _INT64, _BYTE_ARRAY = 0, 1, 2, 6
_INT64_BYTES: Final = 8
_WIDTH_BYTES: Final = {_BOOLEAN: 1, _INT32: 4, _INT64: _INT64_BYTES, _BYTE_ARRAY: 8}
_DATA_PAGE, _DICTIONARY_PAGE = 0, 2
_PLAIN, _PLAIN_DICTIONARY, _RLE, _DELTA_BINARY_PACKED, _RLE_DICTIONARY = 0, 2, 3, 5, 8
_BY_DICTIONARY: Final = {_PLAIN_DICTIONARY, _RLE_DICTIONARY}
_ENCODINGS: Final = {_PLAIN, _RLE, _DELTA_BINARY_PACKED} | _BY_DICTIONARY


@dataclass(frozen=True, slots=True)
class Chunk:
    """The pages of a column in a row group, at bytes `start` to `end` of the file."""

    column: str
    is_nested: bool
    kind: int
    values: int
    start: int
    end: int

    @property
    def is_text(self) -> bool:
        return self.kind == _BYTE_ARRAY


@dataclass(frozen=True, slots=True)
class RowGroup:
    rows: int
    # First and last value of the first column, the time, where the file has them.
    span: tuple[int, int] | None
    chunks: list[Chunk]


def footer_of(content: Bytes) -> Bytes:
    """Of a whole file, as long as it says; CorruptData if that is longer than the file."""
    claimed = content[-_LENGTH_AND_MAGIC_BYTES : -len(_MAGIC)]
    size_bytes = int.from_bytes(claimed, "little") + _LENGTH_AND_MAGIC_BYTES
    if size_bytes > len(content):
        raise CorruptData("a footer that is longer than its file")
    return content[-size_bytes:]


def read_footer(data: Bytes) -> list[RowGroup]:
    """From the file's last bytes: metadata, its length, `PAR1`. CorruptData if it contradicts
    itself.
    """
    metadata = data[:-_LENGTH_AND_MAGIC_BYTES]
    if len(metadata) > _MOST_FOOTER_BYTES:
        raise CorruptData(f"a footer of {len(metadata):,} bytes")
    # Arrow reads as many as it says, from the end.
    if data[-_LENGTH_AND_MAGIC_BYTES:] != len(metadata).to_bytes(4, "little") + _MAGIC:
        raise CorruptData("a footer of another length than it says")
    fields, _ = read_structure(metadata, 0)
    leaves = list(_leaves(fields))
    return [_row_group(group, leaves) for group in _take(fields, 4, list)]


def decoded_bytes(
    content: Bytes, group: RowGroup, columns: Collection[str], coded: Collection[str]
) -> int:
    """The most that Arrow takes for these columns of a row group, of which `coded` stay
    dictionaries; CorruptData if a page is of a kind that no recorder writes.
    """
    return sum(
        _chunk_bytes(content, chunk, chunk.column in coded)
        for chunk in group.chunks
        if chunk.column in columns
    )


def _leaves(metadata: Structure) -> Iterator[tuple[list[bytes], int]]:
    """Path and physical type of each column: the schema is a tree, written depth first."""
    elements: Iterator[Any] = iter(_take(metadata, 2, list))

    def below(count: int, path: list[bytes]) -> Iterator[tuple[list[bytes], int]]:
        if len(path) > _DEEPEST:
            raise CorruptData("a column of Parquet has more than three levels")
        found = 0
        for element in islice(elements, count):
            found += 1
            here = [*path, _take(element, 4, bytes)]
            children = element.get(5, 0)
            if children:
                yield from below(_count(element, 5), here)
            else:
                yield here, _count(element, 1)
        if found < count:
            raise CorruptData("the schema of Parquet ends before its end")

    root: Any = next(elements, None)
    yield from below(_count(root, 5), [])


def _row_group(group: Any, leaves: list[tuple[list[bytes], int]]) -> RowGroup:
    columns = _take(group, 1, list)
    if len(columns) != len(leaves):
        raise CorruptData("a row group has more or fewer columns than its schema")
    rows = _count(group, 3)
    chunks = [_chunk(column, leaf, rows) for column, leaf in zip(columns, leaves, strict=True)]
    first = _take(columns[0], 3, dict) if columns else {}
    return RowGroup(rows, _span(first), chunks)


def _chunk(column: Any, leaf: tuple[list[bytes], int], rows: int) -> Chunk:
    path, kind = leaf
    fields = _take(column, 3, dict)
    if fields.get(3) != path or fields.get(1) != kind or kind not in _WIDTH_BYTES:
        raise CorruptData("a row group has other columns than its schema")
    values = _count(fields, 5)
    if values < rows or (values > rows and len(path) == 1):
        raise CorruptData(f"a column of {values:,} values in {rows:,} rows")
    start = min(_count(fields, number) for number in (9, 11) if number == 9 or number in fields)
    column, is_nested = path[0].decode("utf-8", "replace"), len(path) > 1
    return Chunk(column, is_nested, kind, values, start, start + _count(fields, 7))


def _span(first: Structure) -> tuple[int, int] | None:
    statistics = first.get(12)
    if first.get(1) != _INT64 or not isinstance(statistics, dict):
        return None
    least, most = statistics.get(6), statistics.get(5)
    if not isinstance(least, bytes) or not isinstance(most, bytes):
        return None
    if len(least) != _INT64_BYTES or len(most) != _INT64_BYTES:
        return None
    return _to_signed(least), _to_signed(most)


def _to_signed(value: bytes) -> int:
    return int.from_bytes(value, "little", signed=True)


def _chunk_bytes(content: Bytes, chunk: Chunk, is_coded: bool) -> int:
    if not 0 < chunk.start <= chunk.end <= len(content):
        raise CorruptData(f"the pages of {chunk.column} lie outside of their file")
    within = content[: chunk.end]
    at, values, size_bytes = chunk.start, 0, chunk.values * _WIDTH_BYTES[chunk.kind]
    while at < chunk.end:
        header, at = read_structure(within, at)
        page_values, page_bytes = _page(header, chunk, is_coded)
        values += page_values
        if chunk.is_text:
            size_bytes += page_bytes
        at += _count(header, 3)
    if at != chunk.end or values != chunk.values:
        raise CorruptData(f"the pages of {chunk.column} are not those that its footer says")
    return size_bytes


def _page(header: Structure, chunk: Chunk, is_coded: bool) -> tuple[int, int]:
    """Its values, none if it is a dictionary, and its bytes once inflated."""
    size_bytes, kind = _count(header, 2), _count(header, 1)
    if size_bytes > _MOST_PAGE_BYTES:
        raise CorruptData(f"a page of {chunk.column} says that it holds {size_bytes:,} bytes")
    if kind == _DICTIONARY_PAGE:
        # A number or the length of a text takes four bytes.
        if _count(_take(header, 7, dict), 1) * 4 > size_bytes:
            raise CorruptData(f"a dictionary of {chunk.column} is shorter than it says")
        return 0, size_bytes
    fields = _take(header, 5, dict)
    encoding = _count(fields, 2)
    # A text from a dictionary may be as long as any, in each row.
    is_repeated = encoding in _BY_DICTIONARY and not is_coded
    if kind != _DATA_PAGE or encoding not in _ENCODINGS:
        raise CorruptData(f"{chunk.column} has a page of a kind that no recorder writes")
    if chunk.is_text and (is_repeated or encoding == _DELTA_BINARY_PACKED):
        raise CorruptData(f"{chunk.column} has texts in an encoding that no recorder writes")
    return _count(fields, 1), size_bytes


def _take(fields: Any, number: int, kind: type) -> Any:
    value = fields.get(number) if isinstance(fields, dict) else None
    if type(value) is not kind:
        raise CorruptData(f"field {number} of a structure of Parquet is missing or of another type")
    return value


def _count(fields: Any, number: int) -> int:
    value: int = _take(fields, number, int)
    if value < 0:
        raise CorruptData(f"field {number} of a structure of Parquet is negative")
    return value
