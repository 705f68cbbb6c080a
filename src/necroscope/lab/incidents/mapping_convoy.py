"""One thread fills gigabytes of memory in one call, and all threads of its program that map stand.

What it does: a server maps and unmaps a small buffer for each request. Another of its threads now
and then has the kernel fill a large arena in one system call (MADV_POPULATE_WRITE), which holds the
lock of the process's mappings (mmap_lock) until the last page is there. Requests stand meanwhile.

Seen in the wild: runtimes and databases that populate, lock or give back an arena at once (mlock,
madvise, munmap of a heap); monitoring that reads /proc/PID/smaps of a large process.

What must be seen: threads asleep for mmap_lock of one process, and the thread that had it.
"""

import ctypes
import mmap
import threading
import time
from typing import ClassVar

from necroscope.lab.noted_waits import NotedWaits, WaitScenario
from necroscope.lab.scenario import KnownCulprit
from necroscope.lab.stage import Stage

# include/uapi/asm-generic/mman-common.h; Linux 5.14.
_POPULATE_WRITE = 23
_MEBIBYTE = 1 << 20
_BUFFER_BYTES = 1 << 16
_ANONYMOUS = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS


def serve(mebibytes: int, piece_mebibytes: int, pause_s: float, logs: list[str]) -> None:
    """Threads that map a buffer per request, and an arena that is filled piece by piece, again and
    again. All by ctypes, which does not keep the interpreter's lock meanwhile.
    """
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long)
    libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    libc.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)

    def take(size_bytes: int) -> int:
        address = libc.mmap(None, size_bytes, mmap.PROT_READ | mmap.PROT_WRITE, _ANONYMOUS, -1, 0)
        assert isinstance(address, int)
        return address

    def answer(log: str) -> None:
        waits = NotedWaits(log)
        while True:
            began = time.monotonic()
            libc.munmap(take(_BUFFER_BYTES), _BUFFER_BYTES)
            waits.note(time.monotonic() - began)
            time.sleep(0.01)

    for log in logs:
        threading.Thread(target=answer, args=(log,), daemon=True).start()
    arena = take(mebibytes * _MEBIBYTE)
    libc.madvise(arena, mebibytes * _MEBIBYTE, mmap.MADV_NOHUGEPAGE)
    while True:
        for start in range(0, mebibytes, piece_mebibytes):
            libc.madvise(arena + start * _MEBIBYTE, piece_mebibytes * _MEBIBYTE, _POPULATE_WRITE)
        for start in range(0, mebibytes, 64):
            libc.madvise(arena + start * _MEBIBYTE, 64 * _MEBIBYTE, mmap.MADV_DONTNEED)
        time.sleep(pause_s)


class SharedMappings(WaitScenario):
    """A server with an arena; the pieces say how much of it is filled at once."""

    mebibytes: ClassVar[int] = 2048
    piece_mebibytes: ClassVar[int]

    def prepare(self, stage: Stage) -> None:
        self.logs = [stage.watch(stage.scratch / f"waits-{number}") for number in range(3)]

    def provoke(self, stage: Stage) -> None:
        pause_s = stage.random.uniform(0.3, 0.8)
        arguments = (self.mebibytes, self.piece_mebibytes, pause_s, self.logs)
        server = stage.start(serve, *arguments, comm=stage.invent("app"), memory_bytes=4 << 30)
        self.culprit = KnownCulprit(server.comm, server.pid)
        stage.hold(server)


class MappingConvoy(SharedMappings):
    name = "mapping-convoy"
    cause = "kernel-lock-convoy"
    twin = "mapping-turns"
    piece_mebibytes = 2048
    worst_ms = 500
