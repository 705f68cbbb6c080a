"""A log collector is stopped, and the service that writes to its pipe stands.

What it does: a service writes lines into a pipe that a collector reads. The collector gets SIGSTOP,
as by a debugger or a `kill -STOP`, and the pipe is full a moment later. The service stands in
write(2) although the machine has nothing to do.

Seen in the wild: containers that stand in write(2) to stdout while the log driver does not read
(moby/moby); services behind a journald that was stopped or hangs.

What must be seen: who stands at the pipe, who should read it, and that this one is stopped.
"""

import os
import signal
import time
from abc import abstractmethod
from typing import ClassVar

from necroscope.lab.actor import Actor
from necroscope.lab.measured import Measurements
from necroscope.lab.scenario import KnownCulprit, KnownOrigin, Scenario, Truth, reached
from necroscope.lab.stage import Stage


def write_lines(path: str, pause_s: float) -> None:
    pipe = os.open(path, os.O_WRONLY)
    while True:
        os.write(pipe, b"a line of a log" * 100)
        time.sleep(pause_s)


def read_and_stop(path: str, after_s: float) -> None:
    """Reads for this long, and is stopped."""
    pipe, until = os.open(path, os.O_RDONLY), time.monotonic() + after_s
    while os.read(pipe, 1 << 16):
        if time.monotonic() > until:
            os.kill(os.getpid(), signal.SIGSTOP)


class LogPipe(Scenario):
    """A service that writes into a pipe, and who reads it."""

    pause_s: ClassVar[float]

    def prepare(self, stage: Stage) -> None:
        self.pipe = str(stage.scratch / stage.invent("tool"))
        os.mkfifo(self.pipe)

    @abstractmethod
    def start_reader(self, stage: Stage) -> Actor:
        """The process at the other end."""

    def provoke(self, stage: Stage) -> None:
        self.reader = self.start_reader(stage)
        self.service = stage.start(write_lines, self.pipe, self.pause_s, comm=stage.invent("app"))
        stage.watch(f"/proc/{self.service.pid}/wchan")
        stage.hold(self.reader, self.service)

    def stood_s(self, stage: Stage, measured: Measurements) -> float:
        """How long the service was found in write(2), by the kernel's own word."""
        looks = [text for _, text in measured.texts(f"/proc/{self.service.pid}/wchan")]
        inside = sum("pipe_write" in text for text in looks)
        return stage.seconds * inside / max(len(looks), 1)


class StalledReader(LogPipe):
    name = "stalled-reader"
    cause = "stalled-reader"
    twin = "slow-reader"
    seconds = 15
    pause_s = 0.005

    def start_reader(self, stage: Stage) -> Actor:
        return stage.start(read_and_stop, self.pipe, 2.0, comm=stage.invent("agent"))

    def verify(self, stage: Stage, measured: Measurements) -> Truth:
        stood_s = self.stood_s(stage, measured)
        return Truth(
            {"stood_s": reached("seconds in which the service stood", stood_s, at_least=5)},
            culprit=KnownCulprit(self.reader.comm, self.reader.pid),
            origin=KnownOrigin("process", self.reader.comm),
        )
