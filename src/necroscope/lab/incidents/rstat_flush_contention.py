"""Many agents read the memory statistics of a node with thousands of busy cgroups, and contend for
one lock.

What it does: thousands of memory cgroups share one file's pages, as containers share an image;
mapping and unmapping them changes the statistics of all of them. Readers on every core ask for
`memory.stat` of their parent again and again. The kernel keeps the changes per core and sums them
up when someone asks, under one lock with interrupts off: while one reader flushes, the others spin,
and what each finds has changed again.

Seen in the wild: the lock-time tools of xdp-project PR #93 and #94 were written for it: dozens of
readers of memory.stat, io.stat and cpu.stat, and softirqs that wait behind a lock held with
interrupts off. More cores make it worse.

What must be seen: several cores in system mode in `cgroup_rstat_flush` (since 6.16
`css_rstat_flush`) below a read of `memory.stat`, with a spin lock's slow path in it; the cgroups
are alive, none is a zombie. Fewer readers or a longer interval cure it.
"""

import mmap
import os
import time
from pathlib import Path

from necroscope.lab.measured import Measurements
from necroscope.lab.scenario import KnownCulprit, KnownOrigin, Scenario, Truth, reached
from necroscope.lab.stage import Stage

_MADV_POPULATE_READ = 22
# With nothing to flush a read takes about a tenth of that.
_QUICK_READ_S = 0.0003


def share_pages(directory: str, name: str, count: int, path: str) -> None:
    """Page i of the file is charged to cgroup i, which touches it first."""
    with open(path, "wb", buffering=0) as file:
        for number in range(count):
            cgroup = Path(directory, f"{name}-{number}")
            cgroup.mkdir()
            (cgroup / "cgroup.procs").write_text(str(os.getpid()))
            os.pwrite(file.fileno(), b"x", number * mmap.PAGESIZE)


def remap(path: str, pause_s: float) -> None:
    """Map and unmap all pages: the count of mapped pages changes in every cgroup."""
    with open(path, "rb") as file:
        area = mmap.mmap(file.fileno(), 0, flags=mmap.MAP_SHARED, prot=mmap.PROT_READ)
    while True:
        area.madvise(_MADV_POPULATE_READ)
        time.sleep(pause_s)
        area.madvise(mmap.MADV_DONTNEED)
        time.sleep(pause_s)


def read_statistics(path: str, log: str) -> None:
    """The milliseconds spent in reads that had something to sum up go to the log."""
    descriptor = os.open(path, os.O_RDONLY)
    report = os.open(log, os.O_CREAT | os.O_WRONLY)
    flushing_s = 0.0
    while True:
        started = time.monotonic()
        os.pread(descriptor, 1 << 16, 0)
        took_s = time.monotonic() - started
        if took_s > _QUICK_READ_S:
            flushing_s += took_s
            os.pwrite(report, b"%d\n" % (flushing_s * 1e3), 0)


class RstatFlushContention(Scenario):
    name = "rstat-flush-contention"
    cause = "rstat-flush-contention"
    twin = "zombie-memcg-walk"

    def prepare(self, stage: Stage) -> None:
        self.pods = stage.make_cgroup(f"{stage.invent('app')}-pods")
        directory = self.pods.directory("memory")
        if self.pods.is_v2:
            (directory / "cgroup.subtree_control").write_text("+memory")
        name, count = stage.invent("app"), stage.random.randrange(5_000, 7_000)
        self.shared = stage.mount_tmpfs(64 << 20) / stage.invent("app")
        stage.start(share_pages, str(directory), name, count, str(self.shared)).wait(90)

    def provoke(self, stage: Stage) -> None:
        self.mapper = stage.start(
            remap,
            str(self.shared),
            stage.random.uniform(0.003, 0.005),
            cpu=stage.other_cores,
            nice=-15,
        )
        name, statistics = stage.invent("agent"), self.pods.file("memory.stat")
        self.logs = [str(stage.scratch / f"reads-{number}") for number in range(3)]
        # The one on another core is there to meet the others at the lock, not to hold that core as
        # well.
        places: tuple[tuple[list[int], int], ...] = (
            ([stage.core], -10),
            ([stage.core], -10),
            (stage.other_cores, 10),
        )
        self.readers = [
            stage.start(read_statistics, statistics, log, comm=name, cpu=cpu, nice=nice)
            for log, (cpu, nice) in zip(self.logs, places, strict=True)
        ]
        stage.watch(self.logs[0])
        stage.hold(self.mapper, *self.readers)

    def verify(self, stage: Stage, measured: Measurements) -> Truth:
        flushing_s = measured.highest(self.logs[0]) / 1e3
        impact = {
            "system_share": reached(
                "system share of the core", measured.shares(stage.core)["system"], at_least=0.5
            ),
            "flushing_share": reached(
                "share of time in reads that flush", flushing_s / stage.seconds, at_least=0.25
            ),
        }
        reader = self.readers[0]
        return Truth(
            impact,
            core=stage.core,
            mode="system",
            culprit=KnownCulprit(reader.comm, reader.pid),
            origin=KnownOrigin("process", reader.comm, also=(self.pods.path,)),
        )
