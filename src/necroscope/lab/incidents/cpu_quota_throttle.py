"""A container that waits while the cores are free.

What it does: an application in a cgroup has more to do than its CPU quota allows. The kernel lets
all of its threads run for some milliseconds of each period and then takes them off the cores until
the next one, whether other tasks want the cores or not. To its users it is slow in jumps of a
period; the node has nothing to complain of.

Seen in the wild: kubernetes #67577 (throttling of containers far below their limit), the mail of
Ivan Babrou to the kernel's list in December 2017, commit de53fd7aedb1 (v5.4).

What must be seen: `nr_throttled` and the throttled time of one cgroup rising period by period while
cores idle. It is not starvation of the node, no core is hot, and a bigger node does not help: the
limit is to act on.
"""

import time
from pathlib import PurePosixPath

from necroscope.lab.measured import Measurements
from necroscope.lab.scenario import KnownCulprit, KnownOrigin, Scenario, Truth, reached
from necroscope.lab.stage import Stage

_PERIOD_US = 100_000


def answer_requests(work_s: float, pause_s: float) -> None:
    """Each request wants this much of a core; the next one comes after a short while."""
    while True:
        until_s = time.thread_time() + work_s
        while time.thread_time() < until_s:
            pass
        time.sleep(pause_s)


class CpuQuotaThrottle(Scenario):
    name = "cpu-quota-throttle"
    cause = "cpu-quota-throttle"
    twin = "userspace-hog"

    def prepare(self, stage: Stage) -> None:
        pod, container = (f"{stage.random.getrandbits(64):016x}" for _ in range(2))
        layout = stage.random.choice(
            (
                "kubepods/burstable/pod{0}/{1}",
                "kubepods/pod{0}/{1}",
                "docker/{0}{1}",
                "{2}.slice/{3}.service",
            )
        )
        path = layout.format(pod, container, stage.invent("app"), stage.invent("app"))
        self.cgroup = stage.make_cgroup(path, controllers=("cpu", "memory"))
        self.quota_us = stage.random.randrange(15_000, 30_000, 1000)
        if self.cgroup.is_v2:
            self.cgroup.write("cpu.max", f"{self.quota_us} {_PERIOD_US}")
        else:
            self.cgroup.write("cpu.cfs_period_us", _PERIOD_US)
            self.cgroup.write("cpu.cfs_quota_us", self.quota_us)
        self.stat = stage.watch(self.cgroup.file("cpu.stat"))

    def provoke(self, stage: Stage) -> None:
        comm = stage.invent("app")
        work_s = stage.random.uniform(0.05, 0.15)
        self.workers = [
            stage.start(answer_requests, work_s, 0.005, comm=comm, cgroup=self.cgroup)
            for _ in range(3)
        ]
        stage.hold(*self.workers)

    def verify(self, stage: Stage, measured: Measurements) -> Truth:
        unit_s = 1e-6 if self.cgroup.is_v2 else 1e-9
        throttled_s = (
            measured.growth(self.stat, "throttled_usec" if self.cgroup.is_v2 else "throttled_time")
            * unit_s
        )
        throttled = measured.growth(self.stat, "nr_throttled")
        impact = {
            "quota_us": self.quota_us,
            "periods_throttled": reached(
                "periods throttled", throttled, at_least=0.3 * stage.seconds * 1e6 / _PERIOD_US
            ),
            "throttled_s": reached("seconds throttled", throttled_s, at_least=0.3 * stage.seconds),
            "idle_share": round(measured.shares(stage.core)["idle"], 4),
        }
        return Truth(
            impact,
            culprit=KnownCulprit(self.workers[0].comm, cgroup=self.cgroup.path),
            origin=KnownOrigin(
                "cgroup", self.cgroup.path, also=(PurePosixPath(self.cgroup.path).name,)
            ),
        )
