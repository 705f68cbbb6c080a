"""Threads of a server wait for a lock that one of them holds for half a second and more.

What it does: a program has one mutex for its state. Its workers take it for microseconds, many
times per second; now and then one thread takes it and keeps it while it sleeps, as a program does
that logs, compacts or calls another service inside the section. All workers stop at once. No core
is busy.

Seen in the wild: Roblox 2021 (Consul's key-value store behind one lock); any server that writes its
log inside a lock.

What must be seen: threads asleep in futex(2) for as long as the holder keeps the lock, nothing slow
in the kernel, cores idle.
"""

import threading
import time

from necroscope.lab.noted_waits import NotedWaits, WaitScenario
from necroscope.lab.pthread_mutex import PthreadMutex
from necroscope.lab.scenario import KnownCulprit
from necroscope.lab.stage import Stage


def serve(workers: int, held_s: float, pause_s: float, log: str) -> None:
    """Workers that share a lock, and one thread that keeps it for this long, again and again."""
    mutex = PthreadMutex()

    def work(waits: NotedWaits | None) -> None:
        while True:
            began = time.monotonic()
            with mutex:
                pass
            if waits is not None:
                waits.note(time.monotonic() - began)
            time.sleep(0.005)

    for number in range(workers):
        waits = NotedWaits(log) if number == 0 else None
        threading.Thread(target=work, args=(waits,), daemon=True).start()
    while True:
        time.sleep(pause_s)
        with mutex:
            time.sleep(held_s)


class UserLockConvoy(WaitScenario):
    name = "user-lock-convoy"
    cause = "user-lock-convoy"
    twin = "worker-pool"
    worst_ms = 500

    def prepare(self, stage: Stage) -> None:
        self.logs = [stage.watch(stage.scratch / "waits")]

    def provoke(self, stage: Stage) -> None:
        server = stage.start(
            serve,
            stage.random.randrange(3, 8),
            stage.random.uniform(0.6, 1.2),
            stage.random.uniform(0.8, 1.5),
            self.logs[0],
            comm=stage.invent("app"),
        )
        self.culprit = KnownCulprit(server.comm, server.pid)
        stage.hold(server)
