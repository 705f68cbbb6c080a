"""A job that asks the kernel to compact all memory, again and again, on a machine whose memory is
always being reloaded.

What it does: a model server loads each new version next to the old one, frees what it does not need
of it in small pieces, and drops the old. A provisioner of huge pages wants memory in one piece:
every few seconds it writes to /proc/sys/vm/compact_memory again and again, until it is content. At
each write the kernel goes through all of memory and moves the pages in the way to the other end of
their zone: isolates, copies, and changes all mappings of each, in that one system call.

Seen in the wild: nixpkgs #211548, golang #61718 and scylladb #8828 (stalls in `compact_zone`,
`isolate_freepages` and `isolate_migratepages` after long uptimes, worse with huge pages turned on).
There the page fault of a huge page asks for it; here a job.

What must be seen: bursts at the job's period of one core in system mode in `compact_zone` and
`migrate_pages`; compaction's scan counters rise by hundreds of thousands while there is memory to
spare. Turning huge pages on would ask for more of the same.
"""

import ctypes
import mmap
import os
import time
from pathlib import Path

from necroscope.lab.measured import Measurements
from necroscope.lab.scenario import KnownCulprit, KnownOrigin, Scenario, Truth, reached
from necroscope.lab.stage import Stage

_COMPACT = "/proc/sys/vm/compact_memory"
_MADV_NOHUGEPAGE = 15
_PIECE_BYTES = 64 << 10
# Loading is not what hurts: a third of a core at most.
_CHUNK_BYTES = 4 << 20
_CHUNK_PAUSE_S = 0.008


def reload_model(size_bytes: int, pause_s: float) -> None:
    """The new version is there before the old one goes: its pages come from where memory is still
    in one piece.
    """
    held = _load(size_bytes)
    while True:
        time.sleep(pause_s)
        fresh = _load(size_bytes)
        for offset in range(0, size_bytes, 2 * _PIECE_BYTES):
            fresh.madvise(mmap.MADV_DONTNEED, offset, _PIECE_BYTES)
        held.close()
        held = fresh


def _load(size_bytes: int) -> mmap.mmap:
    area = mmap.mmap(-1, size_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    area.madvise(_MADV_NOHUGEPAGE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(area))
    for offset in range(0, size_bytes, _CHUNK_BYTES):
        ctypes.memset(address + offset, 1, min(_CHUNK_BYTES, size_bytes - offset))
        time.sleep(_CHUNK_PAUSE_S)
    return area


def compact(period_s: float, burst_s: float, log: str) -> None:
    """One compaction after the other for `burst_s`, then rest; how many there were goes to the
    log.
    """
    count = 0
    report = os.open(log, os.O_CREAT | os.O_WRONLY)
    while True:
        started = time.monotonic()
        while time.monotonic() - started < burst_s:
            Path(_COMPACT).write_text("1")
            count += 1
            os.pwrite(report, b"%d\n" % count, 0)
        time.sleep(max(0.5, period_s - burst_s))


class CompactionStall(Scenario):
    name = "compaction-stall"
    cause = "compaction-stall"
    twin = "page-fault-storm"
    seconds = 25
    needs = (_COMPACT,)

    def prepare(self, stage: Stage) -> None:
        size_bytes = stage.random.randrange(1200, 1500) << 20
        cgroup = stage.make_cgroup(f"{stage.invent('app')}-pod")
        self.server = stage.start(
            reload_model,
            size_bytes,
            0.5,
            cpu=stage.other_cores,
            cgroup=cgroup,
            nice=-10,
            memory_bytes=4 << 30,
        )

    def provoke(self, stage: Stage) -> None:
        self.log = str(stage.scratch / "compactions")
        stage.watch(self.log)
        burst_s = stage.random.uniform(2.0, 3.0)
        period_s = burst_s + stage.random.uniform(2.0, 3.0)
        self.job = stage.start(
            compact,
            period_s,
            burst_s,
            self.log,
            comm=stage.invent("tool"),
            cpu=stage.core,
            nice=-10,
        )
        stage.hold(self.job, self.server)

    def verify(self, stage: Stage, measured: Measurements) -> Truth:
        scanned, moved = (
            measured.growth("/proc/vmstat", key)
            for key in ("compact_migrate_scanned", "pgmigrate_success")
        )
        impact = {
            "system_share_peak_1s": reached(
                "highest system share over a second",
                measured.peak_share(stage.core, ("system",), 1.0),
                at_least=0.7,
            ),
            "compactions": reached("compactions", measured.highest(self.log), at_least=3),
            "pages_scanned": reached("pages scanned", scanned, at_least=5_000_000),
            "pages_moved": reached("pages moved", moved, at_least=50_000),
        }
        return Truth(
            impact,
            core=stage.core,
            mode="system",
            culprit=KnownCulprit(self.job.comm, self.job.pid),
            origin=KnownOrigin("process", self.job.comm, also=(self.server.comm,)),
        )
