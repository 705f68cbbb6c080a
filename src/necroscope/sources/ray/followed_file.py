"""One log file that is followed: by descriptor, from where we were, a bounded piece at a time, only
lines that tell something.
"""

import os
import re
from typing import Final

PIECE_BYTES: Final = 256 * 1024
# A file that is this far ahead of us is not caught up with: the middle is left out, and that is
# said.
BEHIND_LIMIT_BYTES: Final = 4 << 20
_LINE_LIMIT_BYTES: Final = 64 * 1024


class FollowedFile:
    """Owns its descriptor, so that a file that is moved away can be read to its end. Whoever writes
    it may cut it.

    `offset` is where the next piece begins; `is_at_end` tells whether the last one was all there
    was.
    """

    def __init__(self, descriptor: int, telling: re.Pattern[bytes], offset: int) -> None:
        self.offset = offset
        self.is_at_end = False
        self.skipped_bytes = 0
        self._descriptor = descriptor
        self._telling = telling
        self._pending = b""

    def read_lines(self, limit_bytes: int = PIECE_BYTES) -> list[bytes]:
        """The telling ones among the whole lines that came since; none if it cannot be read."""
        try:
            data = self._read(limit_bytes)
        except OSError:
            self.is_at_end = True
            return []
        end = data.rfind(b"\n") + 1
        self._pending = data[end:][-_LINE_LIMIT_BYTES:]
        return _telling_lines(data[:end], self._telling)

    def _read(self, limit_bytes: int) -> bytes:
        """What is left of the last piece, and the next one."""
        size = os.fstat(self._descriptor).st_size
        if size < self.offset:
            self.offset, self._pending = 0, b""
        if size - self.offset > BEHIND_LIMIT_BYTES:
            self.skipped_bytes += size - limit_bytes - self.offset
            self.offset, self._pending = size - limit_bytes, b""
        piece = os.pread(self._descriptor, limit_bytes, self.offset) if size > self.offset else b""
        self.offset += len(piece)
        self.is_at_end = len(piece) < limit_bytes
        return self._pending + piece

    def take_skipped_bytes(self) -> int:
        skipped, self.skipped_bytes = self.skipped_bytes, 0
        return skipped

    def close(self) -> None:
        os.close(self._descriptor)


def _telling_lines(data: bytes, telling: re.Pattern[bytes]) -> list[bytes]:
    lines = []
    position = 0
    while (match := telling.search(data, position)) is not None:
        start = data.rfind(b"\n", 0, match.start()) + 1
        position = data.find(b"\n", match.end()) + 1 or len(data)
        lines.append(data[start : min(position - 1, start + _LINE_LIMIT_BYTES)])
    return lines
