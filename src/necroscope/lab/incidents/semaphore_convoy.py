"""Processes wait for a semaphore that one of them keeps for seconds.

What it does: a program of several processes, as Python's multiprocessing makes them, has one
semaphore for a lock. The workers take it for microseconds; now and then the first process takes it
and sleeps for some seconds, as a program does that waits for a remote service inside the section.
No core is busy.

Seen in the wild: multiprocessing.Lock around a download; PostgreSQL's lightweight locks, which are
semaphores.

What must be seen: processes asleep in futex(2) for as long as the holder keeps the semaphore, who
gave it to whom, and that the holder slept.
"""

import multiprocessing
import os
import time

from necroscope.lab.measured import Measurements
from necroscope.lab.noted_waits import NotedWaits
from necroscope.lab.scenario import KnownCulprit, KnownOrigin, Scenario, Truth, reached
from necroscope.lab.stage import Stage


def serve(workers: int, held_s: float, pause_s: float, log: str) -> None:
    """Workers that share a semaphore, and the first process that keeps it, again and again."""
    semaphore = multiprocessing.get_context("fork").Lock()
    for number in range(workers):
        if os.fork() == 0:
            waits = NotedWaits(log) if number == 0 else None
            while True:
                began = time.monotonic()
                with semaphore:
                    pass
                if waits is not None:
                    waits.note(time.monotonic() - began)
                time.sleep(0.005)
    while True:
        time.sleep(pause_s)
        with semaphore:
            time.sleep(held_s)


class SemaphoreConvoy(Scenario):
    name = "semaphore-convoy"
    cause = "user-lock-convoy"
    twin = "process-pool"

    def prepare(self, stage: Stage) -> None:
        self.log = stage.watch(stage.scratch / "waits")

    def provoke(self, stage: Stage) -> None:
        self.server = stage.start(
            serve,
            stage.random.randrange(3, 6),
            stage.random.uniform(3.5, 6),
            stage.random.uniform(0.8, 1.5),
            self.log,
            comm=stage.invent("app"),
        )
        stage.hold(self.server)

    def verify(self, stage: Stage, measured: Measurements) -> Truth:  # noqa: ARG002
        worst_ms = measured.highest(self.log)
        return Truth(
            {"worst_wait_ms": reached("longest wait in ms", worst_ms, at_least=3000)},
            culprit=KnownCulprit(self.server.comm, self.server.pid),
            origin=KnownOrigin("process", self.server.comm),
        )
