"""A table's file of which only checked bytes are given out; each checked stretch is read at most
once, when asked for.
"""

import os
import zlib
from pathlib import Path

import numpy as np

from necroscope.errors import CorruptData
from necroscope.segment.checksum import open_regular
from necroscope.segment.manifest import ByteRange, TableEntry


class VerifiedFile:
    """`content` is as long as the file and holds what was checked so far; the rest is zeros, which
    take no memory.

    Not mapped: a file that is cut while it is mapped ends whoever reads it.
    """

    def __init__(self, path: Path, entry: TableEntry) -> None:
        """CorruptData if the file has another size than the manifest says."""
        self._name = path.name
        self._ranges = _tiling(path.name, entry)
        self._checked: set[int] = set()
        self.bytes_read = 0
        try:
            self._file = open_regular(path)
        except OSError as error:
            raise CorruptData(f"{path.name}: {error.strerror}") from error
        if os.fstat(self._file.fileno()).st_size != entry.bytes:
            self._file.close()
            raise CorruptData(f"{path.name} has another size than its manifest says")
        self.content = np.zeros(entry.bytes, dtype=np.uint8)

    def footer(self) -> bytes:
        return bytes(self._check(len(self._ranges) - 1))

    def check_group(self, group: int) -> None:
        """Bring in the stretch of a row group; CorruptData if it is not what was written."""
        if not 0 <= group < len(self._ranges) - 2:
            raise CorruptData(f"the manifest has no range for row group {group} of {self._name}")
        self._check(group + 1)

    def close(self) -> None:
        self._file.close()

    def _check(self, index: int) -> memoryview:
        offset, length, crc = self._ranges[index]
        stretch = self.content.data[offset : offset + length]
        if index not in self._checked:
            try:
                size = os.preadv(self._file.fileno(), [stretch], offset)
            except OSError as error:
                raise CorruptData(
                    f"{self._name} cannot be read at byte {offset}: {error.strerror}"
                ) from None
            self.bytes_read += size
            if size != length or zlib.crc32(stretch) != crc:
                stretch[:] = bytes(length)
                raise CorruptData(
                    f"{self._name} fails its checksum between bytes {offset} and {offset + length}"
                )
            self._checked.add(index)
        return stretch


def _tiling(name: str, entry: TableEntry) -> list[ByteRange]:
    """The ranges, if they lie one after the other and cover the file: a byte outside of them would
    go unchecked.
    """
    position = 0
    for offset, length, _ in entry.ranges:
        if offset != position or length <= 0:
            raise CorruptData(f"the manifest's ranges do not cover {name}")
        position += length
    if position != entry.bytes or not entry.ranges:
        raise CorruptData(f"the manifest's ranges do not cover {name}")
    return entry.ranges
