"""A process's executable mappings, kept as the raw records the ring gave and parsed only when one of its addresses is sampled.

In an exec storm thousands of processes a second map their libraries and exit unseen: keeping their bytes costs a tenth of
parsing them.
"""

import os
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from typing import Final

from necroscope.perf_abi.records import MMAP2_BODY
from necroscope.symbols.process_maps import Mapping

_BODY_END: Final = 8 + MMAP2_BODY.size
_MOST_RECORDS: Final = 4096
_MOST_COPIED: Final = 64
_MAPPING_BYTES: Final = 400


def parse_mmap2(record: bytes) -> Mapping:
    """PERF_RECORD_MMAP2 without build id (include/uapi/linux/perf_event.h)."""
    _, _, address, length, file_offset, major, minor, inode, *_ = MMAP2_BODY.unpack_from(record, 8)
    path = record[_BODY_END : record.find(b"\0", _BODY_END)]
    return Mapping(address, address + length, file_offset, major, minor, inode, os.fsdecode(path))


class AddressSpace:
    """Mappings of one program image. `is_complete` says that its exec was seen, so nothing has to be asked of /proc."""

    __slots__ = ("_base", "_mappings", "_parsed", "_records", "_starts", "is_complete", "names", "stacks")

    def __init__(self, *, is_complete: bool, base: tuple[Mapping, ...] = ()) -> None:
        self.is_complete = is_complete
        self.stacks: dict[bytes, int] = {}
        self.names: dict[int, int] = {}  # numbers of frames by address
        self._base = base
        self._records: list[bytes] = []
        self._parsed = -1  # how many records the mappings below hold; -1: not even the base
        self._starts: list[int] = []
        self._mappings: list[Mapping] = []

    @property
    def size_bytes(self) -> int:
        """About what it holds in memory, records shared with a parent included."""
        return sum(map(len, self._records)) + _MAPPING_BYTES * (len(self._base) + len(self._mappings))

    def add(self, record: bytes) -> None:
        """A new mapping. Just-in-time compilers map the same pages again and again: too many records become one picture."""
        if len(self._records) >= _MOST_RECORDS:
            self._fold()
        self._records.append(record)
        if self.names:
            self.names.clear()  # the new mapping may lie over what they name

    def fork(self) -> "AddressSpace":
        """A child's image: the same mappings until it maps or execs on its own."""
        if len(self._records) > _MOST_COPIED:
            self._fold()  # thousands of children share the base, and copy only the records
        child = AddressSpace(is_complete=self.is_complete, base=self._base)
        child._records = self._records.copy()
        return child

    def complete(self, ask_process_maps: Callable[[], Iterable[Mapping] | None]) -> None:
        """Fill in what was mapped before we watched; asked once, whatever comes of it."""
        if self.is_complete:
            return
        self.is_complete = True
        mappings = ask_process_maps()
        if mappings is not None:
            self._base = tuple(mappings)
            self._records = []  # older than what was just read
            self._parsed = -1

    def find(self, address: int) -> Mapping | None:
        if self._parsed != len(self._records):
            self._parse()
        index = bisect_right(self._starts, address) - 1
        if index < 0:
            return None
        mapping = self._mappings[index]
        return mapping if address < mapping.end else None

    def _parse(self) -> None:
        if self._parsed < 0:
            self._mappings = sorted(self._base)
            self._starts = [mapping.start for mapping in self._mappings]
            self._parsed = 0
        for record in self._records[self._parsed :]:
            self._lay_over(parse_mmap2(record))
        self._parsed = len(self._records)

    def _lay_over(self, new: Mapping) -> None:
        """The newest mapping wins, because unmapping leaves no record; what it does not cover of older ones stays."""
        first = bisect_right(self._starts, new.start)
        if first and self._mappings[first - 1].end > new.start:
            first -= 1
        last = max(first, bisect_left(self._starts, new.end))
        pieces = [old._replace(end=new.start) for old in self._mappings[first:last] if old.start < new.start]
        pieces.append(new)
        for old in self._mappings[first:last]:
            if old.end > new.end:
                pieces.append(old._replace(start=new.end, file_offset=old.file_offset + new.end - old.start))
        self._mappings[first:last] = pieces
        self._starts[first:last] = [piece.start for piece in pieces]

    def _fold(self) -> None:
        """Records to mappings; of a process with too many of them the files stay, which are the ones with names."""
        self._parse()
        kept = self._mappings
        if len(kept) > _MOST_RECORDS // 2:
            kept = [mapping for mapping in kept if mapping.inode][: _MOST_RECORDS // 2]
        self._base = tuple(kept)
        self._records = []
        self._parsed = -1
