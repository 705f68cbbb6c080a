"""A batch job with a large weight fills a core that another container's server needs.

What it does: two cgroups share a core. The workers of one compute without end, and its weight is a
hundred times the other's; the other's server wants a few milliseconds at a time and waits for its
turn for hundreds of milliseconds. The scheduler follows the weights.

Seen in the wild: Netflix 2024 (noisy neighbours by run queue latency); requests of containers that
are set to what a job may use, not to what it needs.

What must be seen: tasks of one cgroup waiting for the core, and another cgroup's tasks on it nearly
all the time.
"""

import time

from necroscope.lab.incidents.userspace_hog import spin
from necroscope.lab.measured import Measurements
from necroscope.lab.noted_waits import NotedWaits
from necroscope.lab.scenario import KnownCulprit, KnownOrigin, Scenario, Truth, reached
from necroscope.lab.stage import Stage


def answer(work_s: float, pause_s: float, log: str) -> None:
    """Requests that each want this much of a core; the log has how much longer they took."""
    waits = NotedWaits(log)
    while True:
        began, until_s = time.monotonic(), time.thread_time() + work_s
        while time.thread_time() < until_s:
            pass
        waits.note(time.monotonic() - began - work_s)
        time.sleep(pause_s)


class NoisyNeighbour(Scenario):
    name = "noisy-neighbour"
    cause = "noisy-neighbour"
    twin = "pinned-worker"
    # A task that waits here also waits behind a task that computes without end.
    tolerates = ("userspace-hog",)

    def prepare(self, stage: Stage) -> None:
        self.log = stage.watch(stage.scratch / "waits")
        self.quiet, self.noisy = (
            stage.make_cgroup(f"{stage.invent('app')}.slice", controllers=("cpu", "memory"))
            for _ in range(2)
        )
        for cgroup, weight in ((self.quiet, 1), (self.noisy, 100)):
            if cgroup.is_v2:
                cgroup.write("cpu.weight", 10 * weight)
            else:
                cgroup.write("cpu.shares", 20 * weight)

    def provoke(self, stage: Stage) -> None:
        comm = stage.invent("tool")
        self.workers = [
            stage.start(
                spin,
                stage.random.randrange(1, 1000, 2),
                comm=comm,
                cpu=stage.core,
                cgroup=self.noisy,
            )
            for _ in range(stage.random.randrange(3, 7))
        ]
        self.server = stage.start(
            answer,
            0.02,
            0.05,
            self.log,
            comm=stage.invent("app"),
            cpu=stage.core,
            cgroup=self.quiet,
        )
        stage.hold(self.server, *self.workers)

    def verify(self, stage: Stage, measured: Measurements) -> Truth:
        worst_ms = measured.highest(self.log)
        return Truth(
            {"worst_wait_ms": reached("longest wait in ms", worst_ms, at_least=300)},
            core=stage.core,
            mode="user",
            culprit=KnownCulprit(self.workers[0].comm, cgroup=self.noisy.path),
            origin=KnownOrigin("cgroup", self.noisy.path, also=(self.workers[0].comm,)),
        )
