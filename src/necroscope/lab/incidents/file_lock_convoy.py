"""Jobs queue for a file lock while its holder sleeps.

What it does: one process takes a lock on a file with flock(2) and keeps it for seconds while it
sleeps, as a job does that waits for a server inside the section. Other jobs want the same lock and
stand. No core is busy.

Seen in the wild: apt and dpkg behind unattended-upgrades; cron jobs behind one that hangs.

What must be seen: processes asleep for the lock, and who has it, also while it is not given back.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from necroscope.lab.actor import Actor
from necroscope.lab.measured import Measurements
from necroscope.lab.noted_waits import NotedWaits, WaitScenario
from necroscope.lab.scenario import KnownCulprit
from necroscope.lab.stage import Stage


@contextmanager
def locked(path: str) -> Iterator[None]:
    file = os.open(path, os.O_RDWR | os.O_CREAT)
    fcntl.flock(file, fcntl.LOCK_EX)
    yield
    os.close(file)


def hold(path: str, held_s: float, pause_s: float) -> None:
    """Takes the lock and keeps it for this long, again and again."""
    while True:
        with locked(path):
            time.sleep(held_s)
        time.sleep(pause_s)


def want(path: str, log: str) -> None:
    """Takes the lock for a moment; the log has how long that took."""
    waits = NotedWaits(log)
    while True:
        began = time.monotonic()
        with locked(path):
            waits.note(time.monotonic() - began)
        time.sleep(0.05)


def measure_queue_s(stage: Stage, measured: Measurements, holder: Actor) -> float:
    """How long jobs stood behind the holder, by /proc/locks, which the stage must watch."""
    looks = [text for _, text in measured.texts("/proc/locks")]
    stood = sum("->" in text and f" {holder.pid} " in text for text in looks)
    return stage.seconds * stood / max(len(looks), 1)


class LockedFile(WaitScenario):
    """Jobs that share a lock on a file, one of which keeps it for longer."""

    held_s: ClassVar[tuple[float, float]]

    def prepare(self, stage: Stage) -> None:
        self.logs = [stage.watch(stage.scratch / "waits")]
        self.file = str(Path(stage.scratch) / stage.invent("tool"))

    def start_holder(self, stage: Stage) -> Actor:
        held_s = stage.random.uniform(*self.held_s)
        return stage.start(hold, self.file, held_s, 0.3, comm=stage.invent("agent"))

    def provoke(self, stage: Stage) -> None:
        self.holder = self.start_holder(stage)
        comm = stage.invent("app")
        jobs = [
            stage.start(want, self.file, self.logs[0], comm=comm)
            for _ in range(stage.random.randrange(2, 5))
        ]
        self.culprit = KnownCulprit(self.holder.comm, self.holder.pid)
        stage.hold(self.holder, *jobs)


class FileLockConvoy(LockedFile):
    name = "file-lock-convoy"
    cause = "file-lock-convoy"
    twin = "file-lock-turns"
    seconds = 15
    held_s = (3.0, 5.0)
    worst_ms = 1500
