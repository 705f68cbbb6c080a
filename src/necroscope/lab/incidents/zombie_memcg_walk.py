"""Tens of thousands of dead memory cgroups, and an agent that has the kernel walk them every few
seconds.

What it does: an unused container crashes at every start, about once per second. Each start
has a memory cgroup of its own and writes one small file into a memory-backed volume. The container
dies and its cgroup is removed; but the file's page is still charged to it, so that the kernel keeps
the dead cgroup: a zombie. Then an agent on one core asks the kernel for something that visits every
cgroup below that path, dead or alive, in one system call. That core is in the kernel for seconds,
and comes back to it a few seconds later. The months of the crash loop are sped up: most zombies are
made directly, in the same place and the same way. Kernels since 5.x keep the sums of the
statistics, so that reading them walks nothing; what still walks is reclaim, and that is what the
agent asks for.

Seen in the wild: the story of this project (68,680 zombies of a vendor's agent, walked by kubelet,
which starved the network driver's poll on that core until the device was reset); GitHub's
"Debugging network stalls on Kubernetes" (2019); cadvisor #1774, #2259.

What must be seen: one core at 100 % system for seconds, at the agent's period, in `mem_cgroup_iter`
and what it calls; a count of memory cgroups far above those that exist, growing with the restarts
of one container. The culprit is the agent, the origin is the container.
"""

from necroscope.lab.crash_loop import NEEDS, start_crash_loop
from necroscope.lab.measured import Measurements
from necroscope.lab.scenario import KnownCulprit, KnownOrigin, Scenario, Truth, reached
from necroscope.lab.stage import Stage
from necroscope.lab.zombies import read_walks_s, speed_up, start_walker


class ZombieMemcgWalk(Scenario):
    name = "zombie-memcg-walk"
    cause = "zombie-memcg-walk"
    twin = "zombies-harmless"
    seconds = 30
    needs = NEEDS

    def prepare(self, stage: Stage) -> None:
        self.count = stage.random.randrange(20_000, 32_000)
        self.loop = start_crash_loop(stage)
        speed_up(stage, self.loop, self.count)

    def provoke(self, stage: Stage) -> None:
        self.log = stage.scratch / "walks"
        self.walker = start_walker(stage, self.loop, self.log)
        stage.hold(self.walker)

    def verify(self, stage: Stage, measured: Measurements) -> Truth:
        walks_s = read_walks_s(self.log, measured.incident[1])
        impact = {
            "walk_s": reached("seconds of the longest walk", max(walks_s), at_least=0.5),
            "walks": len(walks_s),
            "system_share": round(measured.shares(stage.core)["system"], 4),
            "system_share_peak_1s": reached(
                "highest system share over a second",
                measured.peak_share(stage.core, ("system",), 1.0),
                at_least=0.85,
            ),
            "memory_cgroups": reached(
                "memory cgroups tracked", measured.tracked_cgroups(), at_least=0.9 * self.count
            ),
        }
        return Truth(
            impact,
            core=stage.core,
            mode="system",
            culprit=KnownCulprit(self.walker.comm, self.walker.pid),
            origin=KnownOrigin(
                "container",
                self.loop.name,
                also=(self.loop.id, self.loop.id[:12], f"/{self.loop.parent}"),
            ),
        )
