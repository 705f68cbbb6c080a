"""Which file was mapped at a user address: executable mappings of a program image, kept raw until one of them is sampled."""

import struct
from bisect import bisect_left, bisect_right
from functools import lru_cache
from itertools import pairwise
from typing import Final, NamedTuple

from necroscope.interchange.perf_data.format import MISC_MMAP_BUILD_ID
from necroscope.perf_abi.records import HEADER, MMAP2, MMAP2_BODY

_MMAP_BODY: Final = struct.Struct("<IIQQQ")  # pid, tid, address, length, file offset, then the name
_MOST_RECORDS: Final = 4096
_MOST_GENERATIONS: Final = 64
_ADDRESS_END: Final = (1 << 64) - 1


class Mapping(NamedTuple):
    """Addresses from `start` to `end` show the file from `file_offset` on."""

    start: int
    end: int
    file_offset: int
    path: str
    build_id: str | None


# A process that forks leaves its records to each child.
@lru_cache(maxsize=8192)
def parse_mapping(record: bytes) -> Mapping:
    """PERF_RECORD_MMAP and MMAP2, the latter also with the build id in the place of device and inode."""
    kind, misc, _ = HEADER.unpack_from(record)
    _, _, start, length, file_offset = _MMAP_BODY.unpack_from(record, 8)
    name_at = 8 + (MMAP2_BODY.size if kind == MMAP2 else _MMAP_BODY.size)
    build_id = None
    if kind == MMAP2 and misc & MISC_MMAP_BUILD_ID and len(record) > 64 and 0 < record[40] <= 20:
        build_id = record[44 : 44 + record[40]].hex()
    end = record.find(b"\0", name_at)
    path = _path(record[name_at : end if end >= 0 else len(record)])
    return Mapping(start, min(start + length, _ADDRESS_END), file_offset, path, build_id)


@lru_cache(maxsize=8192)
def _path(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")


MAPPING_BYTES: Final = 8 + _MMAP_BODY.size


Mappings = tuple[Mapping, ...]
"""Sorted by address; they do not overlap."""


class Image:
    """The mappings of one process from its exec on. A new mapping over an old one begins a generation of its own."""

    __slots__ = ("_base", "_records", "_tables", "number", "pid")

    def __init__(self, number: int, pid: int, base: Mappings = ()) -> None:
        self.number = number
        self.pid = pid
        self._base = base
        self._records: list[tuple[int, bytes]] = []
        self._tables: list[tuple[int, Mappings]] = []

    def add(self, time: int, record: bytes) -> None:
        if len(self._records) >= _MOST_RECORDS:
            self.generations()
        self._records.append((time, record))

    def fork(self, number: int, pid: int) -> "Image":
        """The child's image: the same mappings until it maps or execs on its own."""
        child = Image(number, pid, self._base)
        child._records = self._records.copy()
        return child

    def generations(self) -> list[tuple[int, Mappings]]:
        """When each generation began, and its mappings; those before the last are forgotten when new records come."""
        if self._records or not self._tables:
            since = self._tables[-1][0] if self._tables else 0
            new = [(time, parse_mapping(record)) for time, record in self._records]
            together = sorted([*self._base, *(mapping for _, mapping in new)])
            if all(one.end <= other.start for one, other in pairwise(together)):
                self._tables = [(since, tuple(together[: 2 * _MOST_RECORDS]))]
            else:
                self._tables = _laid_over(self._base, new, since)
            self._records = []
            self._base = self._tables[-1][1]
        return self._tables


def _laid_over(base: Mappings, new: list[tuple[int, Mapping]], since: int) -> list[tuple[int, Mappings]]:
    mappings = list(base)
    starts = [mapping.start for mapping in mappings]
    tables: list[tuple[int, Mappings]] = []
    for time, mapping in new:
        first, last = _covered(mappings, starts, mapping)
        if first < last and time > since and len(tables) < _MOST_GENERATIONS:
            tables.append((since, tuple(mappings)))
            since = time
        _lay_over(mappings, starts, mapping, first, last)
    tables.append((since, tuple(mappings[: 2 * _MOST_RECORDS])))
    return tables


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
