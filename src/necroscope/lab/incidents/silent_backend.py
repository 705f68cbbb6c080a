"""The holder of a lock waits for a backend that is stopped: three processes in a row.

What it does: jobs share a lock on a file. The one that has it asks a backend over a UNIX socket and
waits for the answer. The backend gets SIGSTOP while it works on a question, so the holder never
gives the lock back, and the jobs stand behind a process that does nothing wrong.

Seen in the wild: package managers behind a post-install script that asks a hung daemon; cron jobs
behind one that waits for a database whose process is stopped.

What must be seen: who stands at the lock, who has it, that this one waits for an answer, and that
the process at the other end of its socket is stopped.
"""

import os
import signal
import socket
import time
from pathlib import Path
from typing import ClassVar

from necroscope.lab.incidents.file_lock_convoy import locked, measure_queue_s, want
from necroscope.lab.measured import Measurements
from necroscope.lab.noted_waits import WaitScenario
from necroscope.lab.scenario import KnownCulprit, KnownOrigin, Truth, reached
from necroscope.lab.stage import Stage


def answer(address: str, work_s: float, stops_after_s: float) -> None:
    """A backend for one client; it is stopped after this long, never if that is 0."""
    with socket.socket(socket.AF_UNIX) as own:
        own.bind(address)
        own.listen()
        client, _ = own.accept()
        until = time.monotonic() + stops_after_s
        while client.recv(64):
            if stops_after_s and time.monotonic() > until:
                os.kill(os.getpid(), signal.SIGSTOP)
            time.sleep(work_s)
            client.send(b"an answer")


def ask_with_lock(path: str, address: str) -> None:
    """Takes the lock, asks, gives the lock back, again and again."""
    with socket.socket(socket.AF_UNIX) as backend:
        while not Path(address).exists():
            time.sleep(0.02)
        backend.connect(address)
        while True:
            with locked(path):
                backend.send(b"a question")
                backend.recv(64)
            time.sleep(0.05)


class LockedQuestions(WaitScenario):
    """Jobs behind a lock, its holder, and the backend that the holder asks."""

    stops_after_s: ClassVar[float]

    def prepare(self, stage: Stage) -> None:
        self.logs = [stage.watch(stage.scratch / "waits")]
        self.file, self.address = (str(stage.scratch / stage.invent("tool")) for _ in range(2))

    def provoke(self, stage: Stage) -> None:
        self.backend = stage.start(
            answer, self.address, 0.03, self.stops_after_s, comm=stage.invent("agent")
        )
        self.holder = stage.start(ask_with_lock, self.file, self.address, comm=stage.invent("tool"))
        comm = stage.invent("app")
        jobs = [stage.start(want, self.file, self.logs[0], comm=comm) for _ in range(3)]
        stage.watch("/proc/locks")
        stage.hold(self.holder, *jobs)


class SilentBackend(LockedQuestions):
    name = "silent-backend"
    cause = "file-lock-convoy"
    twin = "quick-backend"
    stops_after_s = 2.0

    def verify(self, stage: Stage, measured: Measurements) -> Truth:
        stood_s = measure_queue_s(stage, measured, self.holder)
        return Truth(
            {"stood_s": reached("seconds in which jobs stood", stood_s, at_least=8)},
            culprit=KnownCulprit(self.holder.comm, self.holder.pid),
            origin=KnownOrigin("process", self.backend.comm),
        )
