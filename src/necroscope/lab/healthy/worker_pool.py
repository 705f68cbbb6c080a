"""Threads that wait for work, and share a lock as locks are meant.

What it does: a program with a pool of threads. They sleep on a condition until there is work, which
comes a few times per second, take a mutex for a moment, and sleep again. Most of them sleep for
seconds on end.

Seen in the wild: every server. A thread that waits for work is not held up.

What must be seen: nothing wrong.
"""

import threading
import time

from necroscope.lab.noted_waits import NotedWaits, WaitScenario
from necroscope.lab.pthread_mutex import PthreadMutex
from necroscope.lab.stage import Stage


def serve(workers: int, pause_s: float, log: str) -> None:
    mutex, work = PthreadMutex(), threading.Semaphore(0)

    def wait_for_work(waits: NotedWaits | None) -> None:
        while True:
            work.acquire()
            began = time.monotonic()
            with mutex:
                time.sleep(0.002)
            if waits is not None:
                waits.note(time.monotonic() - began)

    for number in range(workers):
        waits = NotedWaits(log) if number == 0 else None
        threading.Thread(target=wait_for_work, args=(waits,), daemon=True).start()
    while True:
        time.sleep(pause_s)
        work.release()


class WorkerPool(WaitScenario):
    name = "worker-pool"
    twin = "user-lock-convoy"
    seconds = 15
    worst_ms = 250

    def prepare(self, stage: Stage) -> None:
        self.logs = [stage.watch(stage.scratch / "waits")]

    def provoke(self, stage: Stage) -> None:
        workers, pause_s = stage.random.randrange(4, 12), stage.random.uniform(0.05, 0.3)
        stage.hold(stage.start(serve, workers, pause_s, self.logs[0], comm=stage.invent("app")))
