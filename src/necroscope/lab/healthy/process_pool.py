"""Processes that wait for work behind each other's semaphore.

What it does: as Python's multiprocessing.Pool, workers take their work from one pipe, and a
semaphore lets one of them read at a time. The one that has it sleeps until there is work, the
others sleep for the semaphore, all of them for seconds. Who gets work gives the semaphore on before
it begins, and sleeps for a while.

Seen in the wild: every pool of processes that has little to do.

What must be seen: nothing wrong.
"""

import multiprocessing
import os
import time

from necroscope.lab.measured import Measurements
from necroscope.lab.noted_waits import NotedWaits
from necroscope.lab.scenario import Scenario, Truth, reached
from necroscope.lab.stage import Stage


def serve(workers: int, pause_s: float, log: str) -> None:
    semaphore = multiprocessing.get_context("fork").Lock()
    reads, writes = os.pipe()
    for number in range(workers):
        if os.fork() == 0:
            waits = NotedWaits(log) if number == 0 else None
            while True:
                began = time.monotonic()
                with semaphore:
                    if waits is not None:
                        waits.note(time.monotonic() - began)
                    os.read(reads, 1)
                time.sleep(0.5)
    while True:
        time.sleep(pause_s)
        os.write(writes, b"x")


class ProcessPool(Scenario):
    name = "process-pool"
    twin = "semaphore-convoy"

    def prepare(self, stage: Stage) -> None:
        self.log = stage.watch(stage.scratch / "waits")

    def provoke(self, stage: Stage) -> None:
        workers, pause_s = stage.random.randrange(3, 6), stage.random.uniform(1.5, 3)
        stage.hold(stage.start(serve, workers, pause_s, self.log, comm=stage.invent("app")))

    def verify(self, stage: Stage, measured: Measurements) -> Truth:  # noqa: ARG002
        worst_ms = measured.highest(self.log)
        return Truth({"worst_wait_ms": reached("longest wait for work", worst_ms, at_least=2000)})
