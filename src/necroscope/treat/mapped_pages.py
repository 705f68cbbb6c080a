"""Which page frames hold a file or a shared memory segment: a mapping of it, and the process's own
page table (/proc/self/pagemap).

Only pages that are in memory are touched (mincore(2)), so nothing is read from a disk, and a hole
of tmpfs stays one. They are touched by the kernel, which answers with an error where a file was cut
short meanwhile; a touch of our own would end the process.
"""

import ctypes
import os
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from necroscope.treat.kernel_pages import Frames

PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_WINDOW_BYTES: Final = 64 << 20
_PROT_READ, _PROT_WRITE, _MAP_SHARED = 1, 2, 1
_MADV_RANDOM, _MADV_REMOVE, _MADV_POPULATE_READ = 1, 9, 22
_PRESENT: Final = 1 << 63
_FRAME_MASK: Final = (1 << 55) - 1
_SHM_RDONLY: Final = 0o10000
_FAILED: Final = ctypes.c_void_p(-1).value

Places = npt.NDArray[np.int64]


class PagesOfWindow(NamedTuple):
    """`places` are page numbers in the file, `frames` where each is in memory."""

    places: Places
    frames: Frames


def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.restype = library.shmat.restype = ctypes.c_void_p
    library.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    library.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    library.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
    library.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    library.shmat.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_int]
    library.shmdt.argtypes = [ctypes.c_void_p]
    return library


_C: Final = _library()


class PageTable:
    """/proc/self/pagemap; frame numbers are told to CAP_SYS_ADMIN only."""

    def __init__(self) -> None:
        self._pagemap = os.open("/proc/self/pagemap", os.O_RDONLY | os.O_CLOEXEC)
        self._memory = os.open("/proc/self/mem", os.O_RDONLY | os.O_CLOEXEC)

    def close(self) -> None:
        os.close(self._pagemap)
        os.close(self._memory)

    def of_file(self, descriptor: int, size_bytes: int) -> Iterator[PagesOfWindow]:
        for start in range(0, size_bytes, _WINDOW_BYTES):
            length = min(_WINDOW_BYTES, size_bytes - start)
            address = _C.mmap(None, length, _PROT_READ, _MAP_SHARED, descriptor, start)
            if address == _FAILED:
                return
            try:
                _C.madvise(address, length, _MADV_RANDOM)
                yield self._of_memory(address, length, start // PAGE_BYTES)
            finally:
                _C.munmap(address, length)

    def of_segment(self, segment: int, size_bytes: int) -> PagesOfWindow | None:
        """Of a System V shared memory segment; None if it is gone or may not be read."""
        address = _C.shmat(segment, None, _SHM_RDONLY)
        if address == _FAILED:
            return None
        try:
            return self._of_memory(address, size_bytes, 0)
        finally:
            _C.shmdt(address)

    def _of_memory(self, address: int, length: int, first: int) -> PagesOfWindow:
        pages = -(-length // PAGE_BYTES)
        vector = (ctypes.c_ubyte * pages)()
        if _C.mincore(address, length, vector):
            return PagesOfWindow(np.zeros(0, np.int64), np.zeros(0, np.uint64))
        resident = np.flatnonzero(np.frombuffer(bytes(vector), dtype=np.uint8) & 1)
        for run in runs(resident):
            self._touch(address + run[0] * PAGE_BYTES, (run[1] - run[0]) * PAGE_BYTES)
        table = os.pread(self._pagemap, 8 * pages, address // PAGE_BYTES * 8)
        entries = np.frombuffer(table, dtype=np.uint64)
        resident = resident[resident < len(entries)]
        entries = entries[resident]
        is_present = (entries & np.uint64(_PRESENT)) != 0
        frames = entries[is_present] & np.uint64(_FRAME_MASK)
        return PagesOfWindow(resident[is_present].astype(np.int64) + first, frames)

    def _touch(self, address: int, length: int) -> None:
        if _C.madvise(address, length, _MADV_POPULATE_READ):
            # Before Linux 5.14: a read of our own memory by the kernel maps it too.
            for place in range(address, address + length, PAGE_BYTES):
                try:
                    os.pread(self._memory, 1, place)
                except OSError:
                    continue


class WritableSegment:
    """A System V segment that is attached for the time of a `with`."""

    def __init__(self, segment: int) -> None:
        self._segment = segment
        self._address = 0

    def __enter__(self) -> "WritableSegment":
        address = _C.shmat(self._segment, None, 0)
        if address == _FAILED:
            raise OSError(ctypes.get_errno(), "cannot attach the segment")
        self._address = address
        return self

    def __exit__(self, *_: object) -> None:
        _C.shmdt(self._address)

    def read(self, first: int, pages: int) -> bytes:
        return ctypes.string_at(self._address + first * PAGE_BYTES, pages * PAGE_BYTES)

    def write(self, first: int, data: bytes) -> None:
        ctypes.memmove(self._address + first * PAGE_BYTES, data, len(data))

    def remove(self, first: int, pages: int) -> None:
        """The pages become a hole."""
        place = self._address + first * PAGE_BYTES
        if _C.madvise(place, pages * PAGE_BYTES, _MADV_REMOVE):
            raise OSError(ctypes.get_errno(), "cannot free pages of the segment")


def runs(places: Places, longest: int = 1 << 40) -> list[tuple[int, int]]:
    """Neighbouring numbers as [first, last + 1), none longer than `longest`."""
    if not len(places):
        return []
    breaks = np.flatnonzero(np.diff(places) != 1) + 1
    starts = [0, *breaks.tolist()]
    ends = [*breaks.tolist(), len(places)]
    return [
        (first, min(first + longest, int(places[end - 1]) + 1))
        for start, end in zip(starts, ends, strict=True)
        for first in range(int(places[start]), int(places[end - 1]) + 1, longest)
    ]
