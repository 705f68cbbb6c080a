"""The ring that BPF programs hand records through, read without a system call
(Documentation/bpf/ringbuf.rst, Linux 5.8).

    page 0             page 1               data, mapped twice so that no record is ever split
    read position      written position     | length, page | record | length, page | record ...

Bit 31 of a length says that the record is still being written, bit 30 that it was given up.
"""

import mmap
import os
import struct
from collections.abc import Iterator
from typing import Final

from necroscope.sources.perf.bpf import create_map

_MAP_TYPE_RINGBUF: Final = 27
_POSITION: Final = struct.Struct("<Q")
_HEAD: Final = struct.Struct("<II")
_BUSY: Final = 1 << 31
_DISCARDED: Final = 1 << 30


class RecordRing:
    """Holds `size_bytes`, a power of two of pages; what does not fit is the writer's to count."""

    def __init__(self, size_bytes: int) -> None:
        self._mask = size_bytes - 1
        self.descriptor = create_map(_MAP_TYPE_RINGBUF, 0, 0, size_bytes)
        try:
            self._read_position = mmap.mmap(self.descriptor, mmap.PAGESIZE)
            self._written = mmap.mmap(
                self.descriptor,
                mmap.PAGESIZE + 2 * size_bytes,
                prot=mmap.PROT_READ,
                offset=mmap.PAGESIZE,
            )
        except BaseException:
            os.close(self.descriptor)
            raise

    def records(self) -> Iterator[bytes]:
        """What is there now; each is free for the writers once the next is asked for."""
        (read,) = _POSITION.unpack_from(self._read_position)
        (end,) = _POSITION.unpack_from(self._written)
        while read < end:
            place = mmap.PAGESIZE + (read & self._mask)
            length, _ = _HEAD.unpack_from(self._written, place)
            if length & _BUSY:
                return
            size_bytes = length & ~_DISCARDED
            if not length & _DISCARDED:
                yield self._written[place + 8 : place + 8 + size_bytes]
            read += 8 + (size_bytes + 7 & ~7)
            _POSITION.pack_into(self._read_position, 0, read)

    def close(self) -> None:
        self._read_position.close()
        self._written.close()
        os.close(self.descriptor)
