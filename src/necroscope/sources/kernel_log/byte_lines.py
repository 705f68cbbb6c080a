"""Whole lines out of bytes that come in pieces."""

from typing import Final

# Longer than any line we keep; a "line" without an end is cut here, so that a hostile writer cannot
# make us grow.
PENDING_LIMIT: Final = 64 * 1024


class ByteLines:
    """Keeps the last, unfinished line until its end comes."""

    def __init__(self) -> None:
        self._pending = b""

    def feed(self, piece: bytes) -> list[bytes]:
        *lines, self._pending = (self._pending + piece).split(b"\n")
        if len(self._pending) > PENDING_LIMIT:
            lines.append(self._pending)
            self._pending = b""
        return lines

    def clear(self) -> None:
        self._pending = b""
