"""Many tasks look at one directory while another holds its lock.

What it does: a shared directory has hundreds of thousands of names in the kernel's cache. A
configuration watcher puts its watch on it and takes it off again, over and over; each time the
kernel marks every cached name in it, with the directory's lock held. Meanwhile several workers do
no more than look the directory up. Path lookup takes no lock as long as no other task does; now it
needs a reference to a locked entry, so that each worker spins until the holder is done.

Seen in the wild: Alibaba's SysOM case of periodic stalls in `lockref_get_not_dead`,
`legitimize_path` and `try_to_unlazy` with a spin lock's slow path above them: no process was hot in
`top`, all were waiting for one dentry.

What must be seen: a core in system mode in many short-lived calls of several processes, in a spin
lock's slow path below path lookup. The wait is not the cause: the frame below says which lock it
is, and another core shows who holds it all that time.
"""

import ctypes
import os
import time

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

# linux/inotify.h: changes of files in the directory, for which every cached child is marked.
_IN_MODIFY = 0x2


def remember_names(directory: str, word: str, count: int) -> None:
    os.chdir(directory)
    for number in range(count):
        os.access(f"{word}.{number}", os.F_OK)


def rewatch(directory: str, pause_s: float) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = libc.inotify_init1(0)
    path = os.fsencode(directory)
    while True:
        watch = libc.inotify_add_watch(descriptor, path, _IN_MODIFY)
        if watch < 0:
            raise OSError(ctypes.get_errno(), "cannot watch the directory")
        libc.inotify_rm_watch(descriptor, watch)
        time.sleep(pause_s)


def look_up(directory: str) -> None:
    while True:
        os.stat(directory)


class PathLookupContention(Scenario):
    name = "path-lookup-contention"
    cause = "path-lookup-contention"
    twin = "dentry-walk"
    tolerates = ("fsnotify-storm",)

    def prepare(self, stage: Stage) -> None:
        if stage.core in stage.other_cores:
            raise CannotProvoke("on one core no task waits while another holds the lock")
        self.directory = stage.scratch / stage.invent("app")
        self.directory.mkdir()
        count = stage.random.randrange(150_000, 300_000)
        stage.start(remember_names, str(self.directory), stage.invent("app"), count).wait(60)

    def provoke(self, stage: Stage) -> None:
        pause_s = stage.random.uniform(0.002, 0.005)
        holder_core = stage.random.choice(stage.other_cores)
        self.holder = stage.start(
            rewatch,
            str(self.directory),
            pause_s,
            comm=stage.invent("agent"),
            cpu=holder_core,
            nice=-10,
        )
        name = stage.invent("app")
        count = stage.random.randrange(2, 5)
        self.workers = [
            stage.start(look_up, str(self.directory), comm=name, cpu=stage.core, nice=-10)
            for _ in range(count)
        ]
        for actor in (self.holder, *self.workers):
            stage.watch_task(actor.pid)
        stage.hold(self.holder, *self.workers)

    def verify(self, stage: Stage, measured: Measurements) -> Truth:
        shares = measured.shares(stage.core)
        impact = {
            "system_share": reached("system share of the core", shares["system"], at_least=0.6),
            # A worker that does not wait spends a third of its time outside the kernel.
            "user_share": reached("user share of the core", shares["user"], at_most=0.25),
            "holder_run_s": reached(
                "seconds that the holder ran",
                measured.schedstat(self.holder.pid)[0],
                at_least=0.2 * stage.seconds,
            ),
        }
        worker = self.workers[0]
        return Truth(
            impact,
            core=stage.core,
            mode="system",
            culprit=KnownCulprit(worker.comm, worker.pid, also=(self.holder.comm,)),
            origin=KnownOrigin("process", self.holder.comm, also=(worker.comm,)),
        )
