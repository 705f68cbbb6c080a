"""A log directory with many watchers, and one writer that pays for all of them.

What it does: dozens of watchers (log shippers, reloaders, editors' servers) each have an inotify
instance on the same directory. A process appends to a file in it with many small writes. At each
write the kernel makes an event for every watcher, in the writer's own system call: allocates it,
compares it with the last, queues it, wakes the reader.

Seen in the wild: zed #55829 and notify #69 (watch storms), the fsnotify fixes of Linux 6.9 for the
cost that parents' watches put on every access.

What must be seen: the writer's core in system mode below `fsnotify` and
`inotify_handle_inode_event`, in a process that watches nothing itself; the watchers look light. The
origin is who watches so widely; raising max_user_watches allows more of the same.
"""

import ctypes
import os
import select

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

# linux/inotify.h
_IN_MODIFY_OR_CLOSE = 0x2 | 0x8
_MOST_READ_BYTES = 1 << 16


def watch(directory: str, instances: int, ready: str) -> None:
    """Each instance as if it were a program of its own; what comes is read and forgotten."""
    libc = ctypes.CDLL(None, use_errno=True)
    poll = select.poll()
    for _ in range(instances):
        descriptor = libc.inotify_init1(os.O_NONBLOCK)
        if (
            descriptor < 0
            or libc.inotify_add_watch(descriptor, os.fsencode(directory), _IN_MODIFY_OR_CLOSE) < 0
        ):
            raise OSError(ctypes.get_errno(), "cannot watch")
        poll.register(descriptor, select.POLLIN)
    os.close(os.open(ready, os.O_CREAT | os.O_WRONLY))
    while True:
        for descriptor, _ in poll.poll():
            os.read(descriptor, _MOST_READ_BYTES)


def write(path: str, log: str) -> None:
    """Small writes to two files in turn: the kernel merges an event only with the same one before
    it.
    """
    files = [os.open(f"{path}.{number}", os.O_CREAT | os.O_WRONLY) for number in range(2)]
    report = os.open(log, os.O_CREAT | os.O_WRONLY)
    writes = 0
    while True:
        for _ in range(500):
            for file in files:
                os.pwrite(file, b"x", 0)
        writes += 1000
        os.pwrite(report, b"%d\n" % writes, 0)


class FsnotifyStorm(Scenario):
    name = "fsnotify-storm"
    cause = "fsnotify-storm"
    twin = "path-lookup-contention"

    def prepare(self, stage: Stage) -> None:
        self.directory = stage.scratch / stage.invent("app")
        self.directory.mkdir()
        self.instances = stage.random.randrange(40, 72)
        ready = stage.scratch / "watching"
        self.watcher = stage.start(
            watch,
            str(self.directory),
            self.instances,
            str(ready),
            comm=stage.invent("agent"),
            cpu=stage.other_cores,
            nice=5,
        )
        while not ready.exists():
            if self.watcher.exit_code is not None:
                raise CannotProvoke(
                    f"cannot make {self.instances} inotify instances: {stage.output()}",
                    "see fs.inotify.max_user_instances",
                )

    def provoke(self, stage: Stage) -> None:
        self.log = str(stage.scratch / "writes")
        stage.watch(self.log)
        path = self.directory / f"{stage.invent('app')}.log"
        self.writer = stage.start(write, str(path), self.log, cpu=stage.core, nice=-10)
        stage.watch_task(self.writer.pid)
        stage.hold(self.writer, self.watcher)

    def verify(self, stage: Stage, measured: Measurements) -> Truth:
        run_s, _ = measured.schedstat(self.writer.pid)
        writes = max(1, measured.highest(self.log))
        impact = {
            "system_share": reached(
                "system share of the core", measured.shares(stage.core)["system"], at_least=0.6
            ),
            # A write of one byte that is not watched takes about a microsecond.
            "write_us": reached(
                "microseconds per write of a byte", run_s * 1e6 / writes, at_least=4.0
            ),
            "watchers": self.instances,
        }
        return Truth(
            impact,
            core=stage.core,
            mode="system",
            culprit=KnownCulprit(self.writer.comm, self.writer.pid, also=(self.watcher.comm,)),
            origin=KnownOrigin("process", self.watcher.comm, also=(self.writer.comm,)),
        )
