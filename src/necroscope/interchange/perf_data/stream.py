"""The data section as blocks of whole records: read piece by piece, compressed records unpacked, hardware traces skipped.

Files are read and not mapped: a mapped file counts into our memory, and one that is cut while we read kills us with SIGBUS.
"""

import struct
from collections.abc import Iterator
from typing import BinaryIO, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from necroscope.interchange.perf_data.format import (
    AUXTRACE,
    COMPRESSED,
    COMPRESSED2,
    FINISHED_ROUND,
    HEADER_FEATURE,
    HEADER_TRACING_DATA,
    SPECIAL,
    UNALIGNED,
)
from necroscope.perf_abi.records import HEADER

Words = npt.NDArray[np.uint64]
Places = npt.NDArray[np.int64]

_PIECE_BYTES: Final = 1 << 20
_PACKED_PIECE_BYTES: Final = 256 << 10
_UNPACKED_PIECE_BYTES: Final = 1 << 20
_HEADER_BYTES: Final = 8
_HEADER_PARTS: Final = np.dtype([("type", "<u4"), ("misc", "<u2"), ("size", "<u2")])
# Types of the kernel's records and of perf's own lie below; others are met one by one.
_USUAL_TYPES: Final = 128
# An empty last block: perf flushes its zstd frame but never ends it, and the reader takes an open end for a cut file.
_ZSTD_END: Final = b"\x01\x00\x00"


class Block(NamedTuple):
    """Whole records: `starts` are their places in `words`. `ends_round`: a FINISHED_ROUND came since the block before."""

    content: bytes
    words: Words
    starts: Places
    ends_round: bool


class RecordStream:
    """Reads from `start` to `end`; `fault` says where and why it had to stop before, `skipped_trace_bytes` what was left out."""

    def __init__(self, file: BinaryIO, start: int, end: int) -> None:
        self.fault: str | None = None
        self.skipped_trace_bytes = 0
        self._file = file
        self._at = start
        self._end = end
        self._rest = b""
        self._aside: list[bytes] = []
        self._round_seen = False
        self._piece_bytes = _PIECE_BYTES

    def blocks(self) -> Iterator[Block]:
        while (kind := self._peek()) is not None:
            if kind in (COMPRESSED, COMPRESSED2):
                yield from self._unpacked()
            elif kind in SPECIAL:
                self._skip_special()
            elif kind == HEADER_FEATURE:
                self._take(HEADER.unpack_from(self._rest)[2])
            else:
                yield self._plain()

    def head_records(self, kinds: tuple[int, ...]) -> Iterator[bytes]:
        """Only records of these types, copied; compressed ones are not looked into."""
        while (kind := self._peek()) is not None:
            if kind in (COMPRESSED, COMPRESSED2, HEADER_FEATURE):
                record = self._take(HEADER.unpack_from(self._rest)[2])
                if kind in kinds:
                    yield record
            elif kind in SPECIAL:
                self._skip_special()
            else:
                block = self._plain()
                headers = block.words[block.starts]
                for place in np.flatnonzero(np.isin((headers & np.uint64(0xFFFFFFFF)).astype(np.uint32), kinds)).tolist():
                    at = int(block.starts[place]) * 8
                    yield block.content[at : at + int(headers[place] >> np.uint64(48))]

    @property
    def position(self) -> int:
        """The file's byte that is read next: for a progress bar."""
        return self._at - len(self._rest)

    def _fill(self, wanted: int) -> bool:
        """Have at least so many bytes at hand, if the file has them."""
        while len(self._rest) < wanted and self._at < self._end:
            self._file.seek(self._at)
            piece = self._file.read(min(max(self._piece_bytes, wanted - len(self._rest)), self._end - self._at))
            if not piece:
                self._end = self._at
                break
            self._at += len(piece)
            self._rest += piece
        return len(self._rest) >= wanted

    def _stop(self, why: str) -> None:
        self.fault = self.fault or f"cut at byte {self.position}: {why}"
        self._at, self._rest = self._end, b""

    def _peek(self) -> int | None:
        """Type of the next record, which is then whole in memory; None at the end."""
        if not self._fill(_HEADER_BYTES):
            if self._rest:
                self._stop(f"{len(self._rest)} bytes are no record")
            return None
        kind, _, size = HEADER.unpack_from(self._rest)
        if size < _HEADER_BYTES or (size % 8 and kind not in UNALIGNED):
            self._stop(f"a record of type {kind} has size {size}")
            return None
        if not self._fill(size):
            self._stop(f"a record of {size} bytes has only {len(self._rest)}")
            return None
        return int(kind)

    def _take(self, size: int) -> bytes:
        taken, self._rest = self._rest[:size], self._rest[size:]
        return taken

    def _plain(self) -> Block:
        """All records at hand up to the first special one."""
        starts, length = record_starts(self._rest)
        words = np.frombuffer(self._rest, np.uint64, len(self._rest) // 8)
        kinds = (words[starts] & np.uint64(0xFFFFFFFF)).astype(np.uint32)
        special = np.flatnonzero(np.isin(kinds, (*SPECIAL, HEADER_FEATURE)))
        if len(special):
            length = int(starts[special[0]]) * 8
            starts, kinds = starts[: special[0]], kinds[: special[0]]
        content = self._rest
        self._rest = content[length:]
        return Block(content, words, starts, bool((kinds == FINISHED_ROUND).any()))

    def _skip_special(self) -> None:
        kind, _, size = HEADER.unpack_from(self._rest)
        record = self._take(size)
        if len(record) < 16:
            self._stop(f"a record of type {kind} has only {size} bytes")
            return
        (skipped,) = struct.unpack_from("<I" if kind == HEADER_TRACING_DATA else "<Q", record, 8)
        if kind == HEADER_TRACING_DATA:
            skipped = skipped + 7 & ~7
        else:
            self.skipped_trace_bytes += skipped
        if skipped > self._end - self._at + len(self._rest):
            self._stop(f"{skipped} bytes of {'hardware trace' if kind == AUXTRACE else 'tracing data'} are not there")
            return
        in_memory = min(skipped, len(self._rest))
        self._rest = self._rest[in_memory:]
        self._at += skipped - in_memory

    def _unpacked(self) -> Iterator[Block]:
        """From the first compressed record on; other records between them come after the piece they were met in."""
        import pyarrow as pa  # noqa: PLC0415  (70 MB: only for those who have compressed files)

        unpacking = pa.CompressedInputStream(pa.PythonFile(_Payloads(self), mode="r"), "zstd")
        self._piece_bytes = _PACKED_PIECE_BYTES  # each record taken moves what is left of the piece
        rest = b""
        while True:
            self._round_seen = False
            try:
                piece = unpacking.read(_UNPACKED_PIECE_BYTES)
            except (OSError, ValueError) as error:
                self._stop(f"compressed records cannot be unpacked ({error})")
                piece = b""
            content = rest + piece
            starts, length = record_starts(content)
            rest = content[length:]
            if len(starts):
                yield Block(content, np.frombuffer(content, np.uint64, len(content) // 8), starts, self._round_seen)
            yield from self._take_aside()
            if not piece:
                break
            if len(rest) >= 1 << 16:
                self._stop("unpacked bytes are no records")
                break
        if rest:
            self.fault = self.fault or f"cut at byte {self.position}: {len(rest)} unpacked bytes are no record"

    def next_payload(self) -> bytes:
        """Of the next compressed record; b"" at the end of the file."""
        while (kind := self._peek()) is not None:
            size = HEADER.unpack_from(self._rest)[2]
            if kind == COMPRESSED:
                return self._take(size)[_HEADER_BYTES:]
            if kind == COMPRESSED2 and size >= 16:
                record = self._take(size)
                return record[16 : 16 + min(struct.unpack_from("<Q", record, 8)[0], size)]
            if kind in SPECIAL:
                self._skip_special()
            elif kind == HEADER_FEATURE:
                self._take(size)
            else:
                self._round_seen |= kind == FINISHED_ROUND
                self._aside.append(self._take(size))
        return b""

    def _take_aside(self) -> Iterator[Block]:
        content = b"".join(self._aside)
        self._aside.clear()
        starts, _ = record_starts(content)
        if len(starts):
            yield Block(content, np.frombuffer(content, np.uint64), starts, False)


class _Payloads:
    """The compressed bytes as a file that ends properly."""

    closed = False

    def __init__(self, stream: RecordStream) -> None:
        self._stream = stream
        self._waiting = b""
        self._ended = False

    def read(self, size: int = -1) -> bytes:
        if not self._waiting and not self._ended:
            self._waiting = self._stream.next_payload()
            if not self._waiting:
                self._ended, self._waiting = True, _ZSTD_END
        size = len(self._waiting) if size < 0 else size
        taken, self._waiting = self._waiting[:size], self._waiting[size:]
        return taken

    def close(self) -> None:
        self.closed = True


def record_starts(content: bytes) -> tuple[Places, int]:
    """Where the whole records begin, in words, and how many bytes they are; ends before the first impossible size.

    Words that look like a header are found all at once; where each ends at the next one, they are records.
    """
    words = np.frombuffer(content, np.uint64, len(content) // 8)
    headers = words.view(_HEADER_PARTS)
    sizes = headers["size"]
    likely = np.flatnonzero((headers["type"] - np.uint32(1) < np.uint32(_USUAL_TYPES)) & (sizes & 7 == 0) & (sizes != 0))
    ends = likely + (sizes[likely] >> 3)
    breaks = np.append(np.flatnonzero(ends[:-1] != likely[1:]), len(likely) - 1)
    runs: list[Places] = []
    at, limit = 0, len(words)
    while at < limit:
        place = int(np.searchsorted(likely, at))
        if place < len(likely) and likely[place] == at:
            last = int(breaks[np.searchsorted(breaks, place)])
            runs.append(likely[place : last + 1])
            at = int(ends[last])
        else:
            size = int(sizes[at])
            if not size or size & 7:
                break
            runs.append(np.array([at], np.int64))
            at += size >> 3
    if at > limit:
        at = int(runs[-1][-1])
        runs[-1] = runs[-1][:-1]
    return np.concatenate([np.zeros(0, np.int64), *runs]), at * 8
