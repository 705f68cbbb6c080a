"""The reader of a journal: every block whose checksum is right, and a gap for every stretch of
bytes that holds none.

After a damaged stretch it looks for the next magic that starts a right block. It reads by chunks
and never maps the file: a recorder on a full disk shortens its journal, and a mapped reader would
die of SIGBUS.
"""

import errno
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

from necroscope.errors import CorruptData
from necroscope.model.reading import Gap
from necroscope.segment.block import (
    HEADER_BYTES,
    KIND_NOTE,
    KIND_ROWS,
    MAGIC,
    RAW_LIMIT,
    Block,
    is_intact,
    parse_header,
)
from necroscope.segment.checksum import open_regular
from necroscope.segment.journal import JOURNAL_FILE, SEGMENT_NOTE, TOTALS_NOTE, SegmentHeader
from necroscope.segment.stored_values import (
    MOST_CPUS,
    take_count,
    take_moment,
    take_text,
)

_CHUNK_BYTES: Final = 1 << 16
_WRONG_SIZES: Final = 4


class Hole(NamedTuple):
    """A stretch of bytes in which no right block is."""

    from_byte: int
    to_byte: int


def read_blocks(path: Path, offset: int = 0) -> Iterator[Block | Hole]:
    """Blocks and holes from an offset on; never an exception for what the file holds.

    A wrong block is read as far as its header claims. Headers that each claim the rest of the file
    would take the square of its size: after some times its size all that follows is a hole.
    """
    with open_regular(path) as file:
        size, hole_from = _size(file), None
        left_bytes = _WRONG_SIZES * size + RAW_LIMIT
        while offset < size:
            block = read_block(file, offset, size) if left_bytes > 0 else None
            if block is None and left_bytes <= 0:
                hole_from, offset = offset if hole_from is None else hole_from, size
            elif block is None:
                left_bytes -= _claim_bytes(file, offset, size) + _CHUNK_BYTES
                hole_from = offset if hole_from is None else hole_from
                offset = _next_magic(file, offset + 1, size)
            else:
                if hole_from is not None:
                    yield Hole(hole_from, offset)
                    hole_from = None
                yield block
                offset += block.header.block_bytes
            if offset >= size and (grown := _size(file)) > size:
                # What looked like a hole may have been a block that was being written.
                size, offset, hole_from = grown, offset if hole_from is None else hole_from, None
        if hole_from is not None:
            yield Hole(hole_from, size)


def _claim_bytes(file: BinaryIO, offset: int, size: int) -> int:
    """How much of the file was read to find that there is no right block at an offset."""
    header = parse_header(_read_at(file, offset, HEADER_BYTES))
    fits = header is not None and offset + header.block_bytes <= size
    return header.block_bytes if header is not None and fits else HEADER_BYTES


def read_block(file: BinaryIO, offset: int, size: int) -> Block | None:
    """The block at an offset, if there is a right one."""
    head = _read_at(file, offset, HEADER_BYTES)
    header = parse_header(head)
    if header is None or offset + header.block_bytes > size:
        return None
    payload = _read_at(file, offset + HEADER_BYTES, header.payload_bytes)
    if len(payload) != header.payload_bytes or not is_intact(head, payload):
        return None
    return Block(header, offset, payload)


class JournalReader:
    """Follows a journal: `advance` yields the blocks of rows that came since, and keeps header,
    totals and gaps up to date.
    """

    def __init__(self, directory: Path, start_ns: int) -> None:
        self.path = directory / JOURNAL_FILE
        self.header: SegmentHeader | None = None
        self.idle_samples = 0
        self.last_ns = start_ns
        self._gaps: list[Gap] = []
        self._open_holes: list[Hole] = []
        self._offset = 0

    @property
    def gaps(self) -> list[Gap]:
        """Holes found so far; one that nothing follows is a moment: when it ends is not known."""
        return self._gaps + [_gap(hole, self.last_ns, self.last_ns) for hole in self._open_holes]

    def advance(self) -> Iterator[Block]:
        """A hole at the end may be a block being written: it is looked at again the next time."""
        self._open_holes = [hole for hole in self._open_holes if hole.from_byte < self._offset]
        for item in read_blocks(self.path, self._offset):
            if isinstance(item, Hole):
                self._open_holes.append(item)
                continue
            self._offset = item.offset + item.header.block_bytes
            if item.header.kind == KIND_NOTE:
                self._take_note(item)
            elif item.header.kind == KIND_ROWS:
                self._take_time(item.header.from_ns, item.header.to_ns)
                yield item

    def read_again(self, offsets: Iterable[int]) -> Iterator[Block]:
        """Blocks that `advance` gave, from the file; OSError if the disk gives something else than
        then.
        """
        with open_regular(self.path) as file:
            for offset in offsets:
                block = read_block(file, offset, self._offset)
                if block is None:
                    raise OSError(
                        errno.EIO, f"{self.path} has no right block at byte {offset} any more"
                    )
                yield block

    def distrust(self, block: Block, cause: str) -> None:
        """The checksum of a block is right and its content is not."""
        self._gaps.append(
            Gap(
                block.header.name,
                block.header.from_ns,
                block.header.to_ns,
                cause,
                lost=block.header.rows,
            )
        )

    def _take_time(self, from_ns: int, to_ns: int) -> None:
        if not to_ns:
            return
        self._gaps += [
            _gap(hole, self.last_ns, max(self.last_ns, from_ns)) for hole in self._open_holes
        ]
        self._open_holes = []
        self.last_ns = max(self.last_ns, to_ns)

    def _take_note(self, block: Block) -> None:
        try:
            note = block.note()
            if block.header.name == SEGMENT_NOTE:
                self.header = _segment_header(note)
            elif block.header.name == TOTALS_NOTE:
                self.idle_samples = take_count(note, "idle_samples")
                if self.header is not None and "to_ns" in note:
                    self._take_end(self.header, note)
        except CorruptData as error:
            self.distrust(block, f"note not understood: {error.facts}")

    def _take_end(self, header: SegmentHeader, note: dict[str, Any]) -> None:
        self.header = header._replace(
            from_ns=take_moment(note, "from_ns"), cpus=take_count(note, "cpus", MOST_CPUS)
        )
        self.last_ns = max(self.last_ns, take_moment(note, "to_ns"))


def _segment_header(note: dict[str, Any]) -> SegmentHeader:
    return SegmentHeader(
        take_text(note, "segment"),
        take_text(note, "node"),
        take_text(note, "boot_id"),
        take_moment(note, "from_ns"),
        take_count(note, "cpus", MOST_CPUS),
        take_count(note, "schema"),
    )


def _gap(hole: Hole, from_ns: int, to_ns: int) -> Gap:
    return Gap(
        "*",
        from_ns,
        to_ns,
        f"journal damaged: no right block from byte {hole.from_byte} to {hole.to_byte}",
    )


def _size(file: BinaryIO) -> int:
    return os.fstat(file.fileno()).st_size


def _read_at(file: BinaryIO, offset: int, count: int) -> bytes:
    """Bytes at an offset, fewer at the end; none where the disk cannot give them."""
    try:
        file.seek(offset)
        return file.read(count)
    except OSError:
        return b""


def _next_magic(file: BinaryIO, offset: int, size: int) -> int:
    while offset < size:
        chunk = _read_at(file, offset, _CHUNK_BYTES)
        if (found := chunk.find(MAGIC)) >= 0:
            return offset + found
        offset += max(len(chunk) - len(MAGIC) + 1, 1) if chunk else _CHUNK_BYTES
    return size
