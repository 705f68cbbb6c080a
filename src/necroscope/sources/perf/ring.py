"""One core's perf ring: a mapped buffer that the kernel fills and we empty (struct perf_event_mmap_page).

Ours because no library reads rings without a compiler on the node. The kernel publishes `data_head`, we publish `data_tail`. On
x86_64 loads and stores keep their order; on aarch64 (never run here) the interpreter's own work between the two reads stands in
for a barrier.
"""

import mmap
import os
from typing import Final

PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_HEAD_OFFSET: Final = 1024


class Ring:
    """Maps the ring of a perf event; `drain` takes everything that is there."""

    def __init__(self, descriptor: int, pages: int) -> None:
        self.descriptor = descriptor
        self.size_bytes = pages * PAGE_BYTES
        self._map = mmap.mmap(descriptor, self.size_bytes + PAGE_BYTES, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
        self._control = memoryview(self._map)[_HEAD_OFFSET : _HEAD_OFFSET + 16].cast("Q")
        self._tail = 0

    def drain(self) -> bytes:
        """All records since the last drain, as one run of bytes; records never straddle two drains."""
        head = self._control[0]
        length = head - self._tail
        if not length:
            return b""
        start = PAGE_BYTES + self._tail % self.size_bytes
        end = start + length
        limit = PAGE_BYTES + self.size_bytes
        data = self._map[start:end] if end <= limit else self._map[start:limit] + self._map[PAGE_BYTES : end - self.size_bytes]
        self._tail = head
        self._control[1] = head
        return data

    def close(self) -> None:
        self._control.release()
        self._map.close()
        os.close(self.descriptor)
