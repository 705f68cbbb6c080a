"""A process whose allocator gives its memory back and takes it again, page by page.

What it does: the threads of one process fill a work area, hand it back to the kernel with
`madvise(MADV_DONTNEED)`, and fill it again. Every page of 4 KiB that they touch is a fault: an
exception, the locks of the address space, a page from the allocator, its zeroing. Nothing is read,
nothing is computed; the core is in the kernel for as long as the process has work.

Seen in the wild: OpenSearch #20933 and golang #33092 (allocators that return memory too eagerly and
convoy on the lock of the address space), bun #27490 (a collector that spins in `madvise`).

What must be seen: one core in system mode below the page fault handler, in one process with several
threads; faults of the machine up by hundreds of thousands per second, none of them from disk. No
compaction, no reclaim, hardly an interrupt to other cores.
"""

import ctypes
import mmap
import threading

from necroscope.lab.measured import Measurements
from necroscope.lab.scenario import KnownCulprit, KnownOrigin, Scenario, Truth, reached
from necroscope.lab.stage import Stage

_MADV_NOHUGEPAGE = 15


def churn(threads: int, area_bytes: int) -> None:
    """Each thread its own area; the C library's memset faults it in without Python's lock."""
    for _ in range(threads - 1):
        threading.Thread(target=_fill_and_free, args=(area_bytes,), daemon=True).start()
    _fill_and_free(area_bytes)


def _fill_and_free(area_bytes: int) -> None:
    area = mmap.mmap(-1, area_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    area.madvise(_MADV_NOHUGEPAGE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(area))
    memset = ctypes.CDLL(None).memset
    memset.argtypes = (ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t)
    while True:
        memset(address, 1, area_bytes)
        area.madvise(mmap.MADV_DONTNEED)


class PageFaultStorm(Scenario):
    name = "page-fault-storm"
    cause = "page-fault-storm"
    twin = "tlb-shootdown"

    def provoke(self, stage: Stage) -> None:
        threads = stage.random.randrange(2, 5)
        area_bytes = stage.random.randrange(16, 64) << 20
        cgroup = stage.make_cgroup(f"{stage.invent('app')}-pod")
        self.path = cgroup.path
        self.process = stage.start(
            churn, threads, area_bytes, cpu=stage.core, nice=-10, cgroup=cgroup
        )
        stage.hold(self.process)

    def verify(self, stage: Stage, measured: Measurements) -> Truth:
        faults = measured.growth("/proc/vmstat", "pgfault") / stage.seconds
        impact = {
            "system_share": reached(
                "system share of the core", measured.shares(stage.core)["system"], at_least=0.6
            ),
            "faults_per_s": reached("page faults per second", faults, at_least=100_000),
            "major_faults_per_s": round(
                measured.growth("/proc/vmstat", "pgmajfault") / stage.seconds, 1
            ),
        }
        return Truth(
            impact,
            core=stage.core,
            mode="system",
            culprit=KnownCulprit(self.process.comm, self.process.pid, self.path),
            origin=KnownOrigin("process", self.process.comm, also=(self.path,)),
        )
