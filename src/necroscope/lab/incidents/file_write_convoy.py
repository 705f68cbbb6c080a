"""One program writes a gigabyte to a shared file in one call, and all who append to it stand.

What it does: programs append lines to one file. Another now and then writes a very large buffer to
the same file in one system call. The kernel holds the file's own lock (i_rwsem) until the call
ends, so the others stand for as long, asleep.

Seen in the wild: a dump that goes to the same log as everything else; a database that writes a
checkpoint into a file that others extend.

What must be seen: tasks asleep for the lock of one file, who gave it back, and that it wrote.
"""

import os
import time
from typing import ClassVar

from necroscope.lab.noted_waits import NotedWaits, WaitScenario
from necroscope.lab.scenario import KnownCulprit
from necroscope.lab.stage import Stage

_MEBIBYTE = 1 << 20


def dump(path: str, mebibytes: int, pieces: int, pause_s: float) -> None:
    """This much at once to the beginning of the file, so often, and again after a pause."""
    file = os.open(path, os.O_RDWR | os.O_CREAT)
    part = [bytes(2 * _MEBIBYTE)] * (mebibytes // 2)
    while True:
        for _ in range(pieces):
            os.pwritev(file, part, 0)
        time.sleep(pause_s)


def append(path: str, offset: int, pause_s: float, log: str) -> None:
    """A line at a time; the log has how long that took."""
    file, waits = os.open(path, os.O_RDWR | os.O_CREAT), NotedWaits(log)
    while True:
        began = time.monotonic()
        os.pwrite(file, b"a line of a log\n", offset)
        waits.note(time.monotonic() - began)
        time.sleep(pause_s)


class SharedFile(WaitScenario):
    """Programs that append to a file, and one that writes much; the pieces say how much at once."""

    mebibytes: ClassVar[int]
    pieces: ClassVar[int]

    def prepare(self, stage: Stage) -> None:
        self.file = str(stage.mount_tmpfs(3 << 30) / stage.invent("app"))
        self.logs = [stage.watch(stage.scratch / f"waits-{number}") for number in range(4)]

    def provoke(self, stage: Stage) -> None:
        others, comm = stage.other_cores, stage.invent("app")
        writers = [
            stage.start(append, self.file, 1 << 31, 0.02, log, comm=comm, cpu=others)
            for log in self.logs
        ]
        dumper = stage.start(
            dump,
            self.file,
            self.mebibytes,
            self.pieces,
            stage.random.uniform(1.5, 2.5),
            comm=stage.invent("tool"),
            cpu=stage.core,
        )
        self.culprit = KnownCulprit(dumper.comm, dumper.pid)
        stage.hold(dumper, *writers)


class FileWriteConvoy(SharedFile):
    name = "file-write-convoy"
    cause = "kernel-lock-convoy"
    twin = "file-write-turns"
    mebibytes = 1800
    pieces = 1
    worst_ms = 500
