"""One core's perf ring: a buffer that the kernel fills and we empty (struct perf_event_mmap_page).

Rings of samples are emptied by the native core. `drain` is for an event that writes a record when
it is asked to.
"""

import ctypes
import mmap
import os
from typing import Final

from necroscope.profile.library import NativeRing

PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_HEAD_OFFSET: Final = 1024


class Ring:
    """Maps the ring of a perf event; `native` is how the core knows it."""

    def __init__(self, descriptor: int, pages: int) -> None:
        self.descriptor = descriptor
        self.size_bytes = pages * PAGE_BYTES
        self._map = mmap.mmap(
            descriptor,
            self.size_bytes + PAGE_BYTES,
            mmap.MAP_SHARED,
            mmap.PROT_READ | mmap.PROT_WRITE,
        )
        # Holds the mapping in its place until `close`.
        self._start: ctypes.c_char | None = ctypes.c_char.from_buffer(self._map)

    def native(self, cpu: int) -> NativeRing:
        assert self._start is not None
        return NativeRing(ctypes.addressof(self._start), self.size_bytes, PAGE_BYTES, cpu, 0)

    def drain(self) -> bytes:
        """All records since the last drain, as one run of bytes; records never straddle two
        drains.
        """
        with memoryview(self._map)[_HEAD_OFFSET : _HEAD_OFFSET + 16].cast("Q") as control:
            head, tail = control
            start = PAGE_BYTES + tail % self.size_bytes
            end, limit = start + head - tail, PAGE_BYTES + self.size_bytes
            data = (
                self._map[start : min(end, limit)]
                + self._map[PAGE_BYTES : max(PAGE_BYTES, end - self.size_bytes)]
            )
            control[1] = head
        return data

    def close(self) -> None:
        self._start = None
        self._map.close()
        os.close(self.descriptor)
