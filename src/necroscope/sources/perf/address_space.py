"""A process's executable mappings, kept as the raw records the ring gave and parsed only when one of its addresses is sampled.

In an exec storm thousands of processes a second map their libraries and exit unseen: keeping their bytes costs a tenth of
parsing them.
"""

import os
import struct
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Final

from necroscope.perf_abi.records import MMAP2_BODY
from necroscope.symbols.process_maps import Mapping

_BODY_END: Final = 8 + MMAP2_BODY.size
_PLACE: Final = struct.Struct("<QQ").unpack_from
_PLACE_OFFSET: Final = 16
_WHAT_OFFSET: Final = 32
_SAMPLE_ID_BYTES: Final = 32  # pid and tid, time, cpu, identifier end every record
_MOST_KNOWN: Final = 4096
_LONGEST_KNOWN_BYTES: Final = 256
_known: Final[dict[bytes, tuple[int, int, int, int, str]]] = {}
_MOST_RECORDS: Final = 4096
_MOST_COPIED: Final = 64
_MAPPING_BYTES: Final = 400

# End of a mapping, what to take from an address in it, and the frames by what is left.
Place = tuple[int, int, dict[int, int]]
# Also the address before 0, which a caller of 0 is moved to, lies in no mapping.
_BEFORE_ALL: Final = -1
_NOTHING: Final[dict[int, int]] = {}
_NOWHERE: Final[Place] = (-1, 0, _NOTHING)


def parse_mmap2(record: bytes) -> Mapping:
    """PERF_RECORD_MMAP2 without build id (include/uapi/linux/perf_event.h)."""
    address, length = _PLACE(record, _PLACE_OFFSET)
    # Where a library lies differs from process to process; what follows in the record is the same in all of them.
    what = record[_WHAT_OFFSET:-_SAMPLE_ID_BYTES]
    known = _known.get(what)
    if known is None:
        known = _parse_what(record)
        if len(what) <= _LONGEST_KNOWN_BYTES:  # a user may make any number of files with paths of 4 KiB
            if len(_known) >= _MOST_KNOWN:
                _known.clear()
            _known[what] = known
    return Mapping(address, address + length, *known)


def _parse_what(record: bytes) -> tuple[int, int, int, int, str]:
    _, _, _, _, file_offset, major, minor, inode, *_ = MMAP2_BODY.unpack_from(record, 8)
    path = record[_BODY_END : record.find(b"\0", _BODY_END)]
    return file_offset, major, minor, inode, os.fsdecode(path)


class AddressSpace:
    """Mappings of one program image. `is_complete` says that its exec was seen, so nothing has to be asked of /proc."""

    __slots__ = (
        "_base",
        "_mappings",
        "_parsed",
        "_records",
        "_starts",
        "callers",
        "is_complete",
        "located",
        "made",
        "stacks",
        "starts",
    )

    def __init__(self, *, is_complete: bool, base: tuple[Mapping, ...] = ()) -> None:
        self.is_complete = is_complete
        self._base = base
        self._records: list[bytes] = []
        self._parsed = -1  # how many records the mappings below hold; -1: not even the base
        self._starts: list[int] = []
        self._mappings: list[Mapping] = []
        # Made at the first sample: most programs of an exec storm never have one.
        self.located: list[Place] | None = None
        self.starts: list[int] = []
        self.made: dict[int, int] = {}
        # Numbers of stacks by the bytes of whole chains, and of the callers in long ones.
        self.stacks: dict[bytes, int] = {}
        self.callers: dict[bytes, int] = {}

    @property
    def size_bytes(self) -> int:
        """About what it holds in memory, records shared with a parent included."""
        return sum(map(len, self._records)) + _MAPPING_BYTES * (len(self._base) + len(self._mappings))

    def add(self, record: bytes) -> None:
        """A new mapping. Just-in-time compilers map the same pages again and again: too many records become one picture."""
        if len(self._records) >= _MOST_RECORDS:
            self._fold()
        self._records.append(record)
        if self.located is not None:
            self.forget_places()  # the new mapping may lie over them

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
            self.forget_places()

    def locate(self) -> None:
        """Lay out `starts` and `located` for whoever looks up addresses by the thousand: the place of an address is
        `located[bisect_right(starts, address) - 1]`, if the address lies before its end. There is nothing in it before `place`.
        """
        if self._parsed != len(self._records):
            self._parse()
        self.starts = [_BEFORE_ALL, *self._starts]
        self.located = [_NOWHERE, *[(mapping.end, 0, _NOTHING) for mapping in self._mappings]]

    def place(self, address: int, shift: int, frames: dict[int, int]) -> None:
        """Say of the mapping around an address what to take from its addresses, and the frames by what is left."""
        if self.located is not None:
            at = bisect_right(self.starts, address) - 1
            self.located[at] = (self.located[at][0], shift, frames)

    def forget_places(self) -> None:
        self.located = None
        self.made = {}
        self.forget_stacks()

    def forget_stacks(self) -> None:
        self.stacks = {}
        self.callers = {}

    def find(self, address: int) -> Mapping | None:
        if self._parsed != len(self._records):
            self._parse()
        index = bisect_right(self._starts, address) - 1
        if index < 0:
            return None
        mapping = self._mappings[index]
        return mapping if address < mapping.end else None

    def _parse(self) -> None:
        if self._parsed < 0 and not self._base and self._parse_apart():
            return
        if self._parsed < 0:
            self._mappings = sorted(self._base)
            self._starts = [mapping.start for mapping in self._mappings]
            self._parsed = 0
        for record in self._records[self._parsed :]:
            self._lay_over(parse_mmap2(record))
        self._parsed = len(self._records)

    def _parse_apart(self) -> bool:
        """The usual case, and half the work: a new program whose mappings do not overlap."""
        mappings = sorted(map(parse_mmap2, self._records))
        if any(one.end > next_one.start for one, next_one in pairwise(mappings)):
            return False
        self._mappings = mappings
        self._starts = [mapping.start for mapping in mappings]
        self._parsed = len(self._records)
        return True

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
