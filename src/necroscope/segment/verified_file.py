"""A read-only file that gives out only bytes whose checksum is right, reading each checked stretch at most once, when touched."""

import io
import os
import zlib
from bisect import bisect_right
from pathlib import Path

from necroscope.errors import CorruptData
from necroscope.segment.manifest import ByteRange, TableEntry


class VerifiedFile:
    """What pyarrow needs of a file; CorruptData goes through pyarrow unchanged. For one thread: seek and read are two calls."""

    mode = "rb"

    def __init__(self, path: Path, entry: TableEntry) -> None:
        """CorruptData if the file has another size than the manifest says."""
        self._name = path.name
        self._entry = entry
        self._ranges = _tiling(path.name, entry)
        self._starts = [start for start, _, _ in self._ranges]
        self._content: dict[int, bytes] = {}
        self._position = 0
        self.bytes_read = 0
        try:
            self._file = path.open("rb", buffering=0)
        except OSError as error:
            raise CorruptData(f"{path.name}: {error.strerror}") from error
        if os.fstat(self._file.fileno()).st_size != entry.bytes:
            self._file.close()
            raise CorruptData(f"{path.name} has another size than its manifest says")

    def footer(self) -> bytes:
        return self._range(len(self._ranges) - 1)

    def read(self, count: int = -1) -> bytes:
        end = self._entry.bytes if count < 0 else min(self._position + count, self._entry.bytes)
        parts = []
        while self._position < end:
            index = bisect_right(self._starts, self._position) - 1
            start, length, _ = self._ranges[index]
            parts.append(self._range(index)[self._position - start : end - start])
            self._position = min(start + length, end)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._entry.bytes}[whence]
        self._position = base + offset
        return self._position

    def tell(self) -> int:
        return self._position

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    @property
    def closed(self) -> bool:
        return self._file.closed

    def close(self) -> None:
        self._file.close()
        self._content.clear()

    def _range(self, index: int) -> bytes:
        if index not in self._content:
            offset, length, crc = self._ranges[index]
            try:
                self._file.seek(offset)
                data = self._file.read(length)
            except OSError as error:
                raise CorruptData(f"{self._name} cannot be read at byte {offset}: {error.strerror}") from None
            self.bytes_read += len(data)
            if len(data) != length or zlib.crc32(data) != crc:
                raise CorruptData(f"{self._name} fails its checksum between bytes {offset} and {offset + length}")
            self._content[index] = data
        return self._content[index]


def _tiling(name: str, entry: TableEntry) -> list[ByteRange]:
    """The ranges, if they lie one after the other and cover the file: a byte outside of them would go unchecked."""
    position = 0
    for offset, length, _ in entry.ranges:
        if offset != position or length <= 0:
            raise CorruptData(f"the manifest's ranges do not cover {name}")
        position += length
    if position != entry.bytes:
        raise CorruptData(f"the manifest's ranges do not cover {name}")
    return entry.ranges
