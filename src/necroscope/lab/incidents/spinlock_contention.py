"""One file with thousands of record locks, and many tasks ask for its state at once.

What it does: a database-like process keeps thousands of byte-range locks in one file. Workers on
several cores ask again and again whether a range is free. The kernel keeps a file's locks in one
list behind one spin lock: the task that has it walks the whole list, and all others spin for as
long as that takes. Every core adds waiting, not work.

Seen in the wild: the generic form of liburing #218 and openzfs #10547, where
`native_queued_spin_lock_slowpath` was 75 % of the machine and every report named it as the cause;
it names only the wait.

What must be seen: several cores in system mode with a spin lock's slow path on top and
`posix_test_lock` below it, in processes that use one file. The answer is the function below the
wait and the process that made the list this long.
"""

import fcntl
import os
import struct
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

# struct flock of 64-bit machines: type, whence, start, length, pid.
_FLOCK = struct.Struct("hhqqi4x")


def hold_locks(path: str, count: int) -> None:
    with open(path, "r+b") as file:
        for number in range(count):
            fcntl.lockf(file, fcntl.LOCK_EX, 1, 2 * number)
        while True:
            time.sleep(1)


def ask(path: str, offset: int) -> None:
    """Past all locks, so that the whole list is walked."""
    question = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, offset, 1, 0)
    with open(path, "r+b") as file:
        while True:
            fcntl.fcntl(file, fcntl.F_GETLK, question)


class SpinlockContention(Scenario):
    name = "spinlock-contention"
    cause = "spinlock-contention"
    twin = "path-lookup-contention"

    def prepare(self, stage: Stage) -> None:
        if stage.core in stage.other_cores:
            raise CannotProvoke("on one core no task waits while another holds the lock")
        self.path = stage.scratch / f"{stage.invent('app')}.db"
        self.path.touch()
        self.count = stage.random.randrange(4_000, 10_000)
        self.keeper = stage.start(hold_locks, str(self.path), self.count)
        stage.watch("/proc/locks")

    def provoke(self, stage: Stage) -> None:
        name, offset = stage.invent("app"), 2 * self.count + 10
        cores = [stage.core, *stage.other_cores[:7], stage.core]
        self.workers = [
            stage.start(
                ask,
                str(self.path),
                offset,
                comm=name,
                cpu=core,
                nice=-10 if core == stage.core else 0,
            )
            for core in cores
        ]
        for worker in self.workers:
            stage.watch_task(worker.pid)
        stage.hold(*self.workers)

    def verify(self, stage: Stage, measured: Measurements) -> Truth:
        locks = max((text.count("\n") for _, text in measured.texts("/proc/locks")), default=0)
        impact = {
            "system_share": reached(
                "system share of the core", measured.shares(stage.core)["system"], at_least=0.6
            ),
            "system_share_elsewhere": reached(
                "system share of another core",
                measured.shares(stage.other_cores[0])["system"],
                at_least=0.2,
            ),
            "record_locks": reached("record locks", locks, at_least=0.9 * self.count),
        }
        worker = self.workers[0]
        return Truth(
            impact,
            core=stage.core,
            mode="system",
            culprit=KnownCulprit(worker.comm, worker.pid, also=(self.keeper.comm,)),
            origin=KnownOrigin("process", worker.comm, also=(self.keeper.comm, str(self.path))),
        )
