"""The data section as whole records: read piece by piece, compressed records unpacked, hardware
traces skipped.

Files are read and not mapped: a mapped file counts into our memory, and one that is cut while we
read kills us with SIGBUS.
"""

import struct
from collections.abc import Callable, Iterator
from typing import BinaryIO, Final

from necroscope.interchange.perf_data.format import (
    AUXTRACE,
    COMPRESSED,
    COMPRESSED2,
    HEADER_FEATURE,
    HEADER_TRACING_DATA,
    SPECIAL,
    UNALIGNED,
)
from necroscope.perf_abi.records import HEADER
from necroscope.profile.capture_core import skip_records

Feed = Callable[[bytes], int]
"""Takes whole plain records from the start of some bytes, and says how many bytes they were
(`Core.feed`).
"""

_PIECE_BYTES: Final = 1 << 20
_PACKED_PIECE_BYTES: Final = 256 << 10
# perf's records pack to a tenth, a machine at rest to a hundredth: more is made to fill a disk.
_MOST_RATIO: Final = 256
_UNPACKED_FREE_BYTES: Final = 64 << 20
_UNPACKED_PIECE_BYTES: Final = 1 << 20
_RECORD_BYTES: Final = 1 << 16
_HEADER_BYTES: Final = 8
# An empty last block: perf flushes its zstd frame but never ends it, and the reader takes an open
# end for a cut file.
_ZSTD_END: Final = b"\x01\x00\x00"


class RecordStream:
    """Reads from `start` to `end`; `fault` says where and why it had to stop before,
    `skipped_trace_bytes` what was left out.
    """

    def __init__(self, file: BinaryIO, start: int, end: int) -> None:
        self.fault: str | None = None
        self.skipped_trace_bytes = 0
        self.is_packed = False
        self._file = file
        self._at = start
        self._end = end
        self._rest = b""
        self._aside: list[bytes] = []
        self._piece_bytes = _PIECE_BYTES

    def pass_to(self, feed: Feed) -> Iterator[int]:
        """Hand over all records; after each piece how many bytes it had."""
        while (kind := self._peek()) is not None:
            if kind in (COMPRESSED, COMPRESSED2):
                yield from self._unpacked(feed)
            elif not self._skipped(kind):
                taken = feed(self._rest)
                if not taken:
                    self._stop("no record begins here")
                    return
                self._rest = self._rest[taken:]
                yield taken

    def head_records(self, kinds: tuple[int, ...]) -> Iterator[bytes]:
        """Only perf's own records of these types; compressed ones are not looked into."""
        while (kind := self._peek()) is not None:
            if kind in kinds or kind in (COMPRESSED, COMPRESSED2):
                record = self._take(HEADER.unpack_from(self._rest)[2])
                if kind in kinds:
                    yield record
            elif not self._skipped(kind):
                self._rest = self._rest[
                    skip_records(self._rest) or HEADER.unpack_from(self._rest)[2] :
                ]

    @property
    def position(self) -> int:
        """The file's byte that is read next: for a progress bar."""
        return self._at - len(self._rest)

    def _fill(self, wanted: int) -> bool:
        """Have at least this many bytes at hand, if the file has them."""
        while len(self._rest) < wanted and self._at < self._end:
            self._file.seek(self._at)
            piece = self._file.read(
                min(max(self._piece_bytes, wanted - len(self._rest)), self._end - self._at)
            )
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
                self._stop(f"{len(self._rest)} bytes are not a record")
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

    def _skipped(self, kind: int) -> bool:
        """Past a record that is not a plain one."""
        if kind in SPECIAL:
            self._skip_special()
        elif kind == HEADER_FEATURE:
            self._take(HEADER.unpack_from(self._rest)[2])
        return kind in SPECIAL or kind == HEADER_FEATURE

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
            self._stop(
                f"{skipped} bytes of {'hardware trace' if kind == AUXTRACE else 'tracing data'} are"
                " not there"
            )
            return
        in_memory = min(skipped, len(self._rest))
        self._rest = self._rest[in_memory:]
        self._at += skipped - in_memory

    def _unpacked(self, feed: Feed) -> Iterator[int]:
        """From the first compressed record on; other records between them come after the piece they
        were met in.
        """
        import pyarrow as pa  # noqa: PLC0415  (55 MB: only for those who have compressed files)

        unpacking = pa.CompressedInputStream(pa.PythonFile(_Payloads(self), mode="r"), "zstd")
        self.is_packed = True
        self._piece_bytes = _PACKED_PIECE_BYTES  # each record taken moves what is left of the piece
        rest = b""
        left_bytes = _UNPACKED_FREE_BYTES + _MOST_RATIO * self._end
        while True:
            try:
                piece = unpacking.read(_UNPACKED_PIECE_BYTES)
            except (OSError, ValueError) as error:
                self._stop(f"compressed records cannot be unpacked ({error})")
                piece = b""
            left_bytes -= len(piece)
            if left_bytes < 0:
                self._stop(f"compressed records are more than {_MOST_RATIO} times the file")
                piece = b""
            content = rest + piece
            taken = feed(content)
            rest = content[taken:]
            for record in self._aside:
                feed(record)
            self._aside.clear()
            yield taken
            if not piece:
                break
            if len(rest) >= _RECORD_BYTES:
                self._stop("unpacked bytes are not records")
                break
        if rest:
            self.fault = (
                self.fault
                or f"cut at byte {self.position}: {len(rest)} unpacked bytes are not a record"
            )

    def next_payload(self) -> bytes:
        """Of the next compressed record; b"" at the end of the file."""
        while (kind := self._peek()) is not None:
            size = HEADER.unpack_from(self._rest)[2]
            if kind == COMPRESSED:
                return self._take(size)[_HEADER_BYTES:]
            if kind == COMPRESSED2 and size >= 16:
                record = self._take(size)
                return record[16 : 16 + min(struct.unpack_from("<Q", record, 8)[0], size)]
            if not self._skipped(kind):
                self._aside.append(self._take(size))
        return b""


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
