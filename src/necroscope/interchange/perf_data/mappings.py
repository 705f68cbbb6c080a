"""Which file was mapped at a user address: executable mappings of a program image, kept raw until one of them is sampled."""

import struct
from bisect import bisect_left, bisect_right
from typing import Final, NamedTuple

import numpy as np

from necroscope.interchange.perf_data.format import MISC_MMAP_BUILD_ID
from necroscope.interchange.perf_data.stream import Places, Words
from necroscope.perf_abi.records import HEADER, MMAP2, MMAP2_BODY

_MMAP_BODY: Final = struct.Struct("<IIQQQ")  # pid, tid, address, length, file offset, then the name
_MOST_RECORDS: Final = 4096
_MOST_GENERATIONS: Final = 64
_ADDRESS_END: Final = (1 << 64) - 1
_LARGEST_OFFSET: Final = (1 << 62) - 1


class Mapping(NamedTuple):
    """Addresses from `start` to `end` show the file from `file_offset` on."""

    start: int
    end: int
    file_offset: int
    path: str
    build_id: str | None


def parse_mapping(record: bytes) -> Mapping:
    """PERF_RECORD_MMAP and MMAP2, the latter also with the build id in the place of device and inode."""
    kind, misc, _ = HEADER.unpack_from(record)
    _, _, start, length, file_offset = _MMAP_BODY.unpack_from(record, 8)
    name_at = 8 + (MMAP2_BODY.size if kind == MMAP2 else _MMAP_BODY.size)
    build_id = None
    if kind == MMAP2 and misc & MISC_MMAP_BUILD_ID and len(record) > 64 and 0 < record[40] <= 20:
        build_id = record[44 : 44 + record[40]].hex()
    path = record[name_at:].partition(b"\0")[0].decode("utf-8", "surrogateescape")
    return Mapping(start, min(start + length, _ADDRESS_END), file_offset, path, build_id)


def mapping_owner(record: bytes) -> int:
    return int(_MMAP_BODY.unpack_from(record, 8)[0])


MAPPING_BYTES: Final = 8 + _MMAP_BODY.size


class MappingTable(NamedTuple):
    """Mappings that do not overlap, sorted, as columns; `mappings` are the same as tuples."""

    starts: Words
    ends: Words
    file_offsets: Places
    mappings: tuple[Mapping, ...]


class Image:
    """The mappings of one process from its exec on. A new mapping over an old one begins a generation of its own."""

    __slots__ = ("_base", "_records", "_tables", "number", "pid")

    def __init__(self, number: int, pid: int, base: tuple[Mapping, ...] = ()) -> None:
        self.number = number
        self.pid = pid
        self._base = base
        self._records: list[tuple[int, bytes]] = []
        self._tables: list[tuple[int, MappingTable]] = []

    def add(self, time: int, record: bytes) -> None:
        if len(self._records) >= _MOST_RECORDS:
            self.generations()
        self._records.append((time, record))

    def fork(self, number: int, pid: int) -> "Image":
        """The child's image: the same mappings until it maps or execs on its own."""
        child = Image(number, pid, self._base)
        child._records = self._records.copy()
        return child

    def generations(self) -> list[tuple[int, MappingTable]]:
        """When each generation began, and its mappings; those before the last are forgotten when new records come."""
        if self._records or not self._tables:
            since = self._tables[-1][0] if self._tables else 0
            mappings = list(self._base)
            starts = [mapping.start for mapping in mappings]
            tables: list[tuple[int, MappingTable]] = []
            for time, record in self._records:
                new = parse_mapping(record)
                first, last = _covered(mappings, starts, new)
                if first < last and time > since and len(tables) < _MOST_GENERATIONS:
                    tables.append((since, _table(mappings)))
                    since = time
                _lay_over(mappings, starts, new, first, last)
            tables.append((since, _table(mappings[: 2 * _MOST_RECORDS])))
            self._tables, self._records = tables, []
            self._base = tables[-1][1].mappings
        return self._tables


def _covered(mappings: list[Mapping], starts: list[int], new: Mapping) -> tuple[int, int]:
    """From and to which place older mappings lie under the new one."""
    first = bisect_right(starts, new.start)
    if first and mappings[first - 1].end > new.start:
        first -= 1
    return first, max(first, bisect_left(starts, new.end))


def _lay_over(mappings: list[Mapping], starts: list[int], new: Mapping, first: int, last: int) -> None:
    """The newest mapping wins, because unmapping leaves no record; what it does not cover of older ones stays."""
    if first == last:
        mappings.insert(first, new)
        starts.insert(first, new.start)
        return
    pieces = [old._replace(end=new.start) for old in mappings[first:last] if old.start < new.start]
    pieces.append(new)
    for old in mappings[first:last]:
        if old.end > new.end:
            pieces.append(old._replace(start=new.end, file_offset=old.file_offset + new.end - old.start))
    mappings[first:last] = pieces
    starts[first:last] = [piece.start for piece in pieces]


def _table(mappings: list[Mapping]) -> MappingTable:
    return MappingTable(
        np.array([mapping.start for mapping in mappings], np.uint64),
        np.array([mapping.end for mapping in mappings], np.uint64),
        np.array([min(mapping.file_offset, _LARGEST_OFFSET) for mapping in mappings], np.int64),
        tuple(mappings),
    )
