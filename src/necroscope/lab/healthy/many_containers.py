"""A node full of containers.

What it does: fifty cgroups in the layout of a Kubernetes node, each with a process that does a
little every second, and an agent that reads the figures of each of them every second, as kubelet
and its like do.

Seen in the wild: every Kubernetes node. The reader is the same that walks dead cgroups in
`zombie-memcg-walk`; here there are none.

What must be seen: nothing wrong: many cgroups, a reader with a period, quotas that are set and not
reached.
"""

import time
from pathlib import Path

from necroscope.lab.measured import Measurements
from necroscope.lab.scenario import Scenario, Truth, reached
from necroscope.lab.stage import Stage

_CONTAINERS = 50


def work_a_little(work_s: float, period_s: float) -> None:
    """As long as it lives."""
    while True:
        until_s = time.thread_time() + work_s
        while time.thread_time() < until_s:
            pass
        time.sleep(period_s)


def read_figures(files: list[str], period_s: float) -> None:
    """The figures of each container, as long as it lives."""
    while True:
        for file in files:
            Path(file).read_bytes()
        time.sleep(period_s)


class ManyContainers(Scenario):
    name = "many-containers"
    twin = "zombie-memcg-walk"
    seconds = 20

    def prepare(self, stage: Stage) -> None:
        random, top = stage.random, f"kubepods-{stage.random.getrandbits(24):06x}"
        self.cgroups = []
        for _ in range(_CONTAINERS):
            quality, pod, container = (
                random.choice(("burstable", "besteffort")),
                *(random.getrandbits(64) for _ in range(2)),
            )
            path = f"{top}/{quality}/pod{pod:016x}/{container:016x}"
            self.cgroups.append(stage.make_cgroup(path, controllers=("cpu", "memory")))
        for cgroup in self.cgroups:
            work_s, period_s = random.uniform(0.002, 0.006), random.uniform(0.7, 1.3)
            stage.start(
                work_a_little, work_s, period_s, comm=stage.invent("app"), cgroup=cgroup, nice=5
            )

    def provoke(self, stage: Stage) -> None:
        files = [
            cgroup.file(name) for cgroup in self.cgroups for name in ("memory.stat", "cpu.stat")
        ]
        stage.hold(stage.start(read_figures, files, 1.0, comm=stage.invent("agent")))

    def verify(self, stage: Stage, measured: Measurements) -> Truth:
        shares = measured.shares(stage.core)
        return Truth(
            {
                "containers": _CONTAINERS,
                "busy_share": reached("busy share of the core", 1 - shares["idle"], at_least=0.03),
                "system_share": reached("system share of the core", shares["system"], at_most=0.6),
            }
        )
