"""A process that changes its own mappings so often that every core it runs on is interrupted all
the time.

What it does: one thread flips the protection of a small mapping, as collectors with read barriers,
debuggers and sandboxes do, while threads of the same process compute on the other cores. The
translations of a page are cached by each core, so every change sends an interrupt to every core
that runs the process and waits until all have answered.

Seen in the wild: JabPerf "TLB shootdowns"; Amit, "Optimizing the TLB shootdown algorithm with page
access tracking" (USENIX ATC 2017): a cost that grows with the cores of the process and shows in
`smp_call_function_many_cond` on the sender.

What must be seen: the sender's core in system mode in `smp_call_function_many_cond` below
`flush_tlb_*`; the row TLB of /proc/interrupts up by tens of thousands per second on the cores of
its other threads, which lose time without a system call of their own. Few page faults.
"""

import ctypes
import mmap
import os
import threading
import zlib

from necroscope.lab.measured import Measurements
from necroscope.lab.scenario import (
    CannotProvoke,
    KnownCulprit,
    KnownOrigin,
    Scenario,
    Truth,
    reached,
)
from necroscope.lab.stage import Stage


def flip(core: int, other_cores: list[int], pages: int) -> None:
    for other in other_cores:
        threading.Thread(target=_compute, args=(other,), daemon=True).start()
    os.sched_setaffinity(0, {core})
    area = mmap.mmap(-1, pages * mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    area.write(bytes([1]) * len(area))
    address = ctypes.addressof(ctypes.c_char.from_buffer(area))
    mprotect = ctypes.CDLL(None, use_errno=True).mprotect
    mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    size_bytes = len(area)
    while True:
        mprotect(address, size_bytes, mmap.PROT_READ)
        mprotect(address, size_bytes, mmap.PROT_READ | mmap.PROT_WRITE)


def _compute(core: int) -> None:
    """In C, without Python's lock, so that it is really on its core all the time."""
    os.sched_setaffinity(0, {core})
    data = os.urandom(1 << 22)
    while True:
        zlib.compress(data, 1)


class TlbShootdown(Scenario):
    name = "tlb-shootdown"
    cause = "tlb-shootdown"
    twin = "page-fault-storm"

    def provoke(self, stage: Stage) -> None:
        self.others = [core for core in stage.other_cores if core != stage.core][:8]
        if not self.others:
            raise CannotProvoke("a machine of one core has no other core to interrupt")
        self.process = stage.start(
            flip, stage.core, self.others, stage.random.randrange(1, 24), nice=-10
        )
        stage.hold(self.process)

    def verify(self, stage: Stage, measured: Measurements) -> Truth:
        received = sum(measured.interrupts(core, "TLB") for core in self.others) / stage.seconds
        before = sum(measured.interrupts(core, "TLB", measured.baseline) for core in self.others)
        impact = {
            "system_share": reached(
                "system share of the core", measured.shares(stage.core)["system"], at_least=0.45
            ),
            "shootdowns_per_s": reached(
                "shootdowns received per second", received, at_least=10_000
            ),
            "shootdowns_before": before,
        }
        return Truth(
            impact,
            core=stage.core,
            mode="system",
            culprit=KnownCulprit(self.process.comm, self.process.pid),
            origin=KnownOrigin("process", self.process.comm),
        )
