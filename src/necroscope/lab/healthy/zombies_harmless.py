"""The same tens of thousands of dead memory cgroups, and no process walks them.

What it does: the crash loop and the leak of `zombie-memcg-walk`, zombie for zombie. The agent is
there as well, but all it does is read the memory statistics every second or so, as kubelet does. On
this kernel the sums are kept, and the read takes a tenth of a millisecond.

Seen in the wild: every node of the same fleet with the same leak but a newer kernel, or without the
agent. The count is the same, and nothing is wrong with any core. Whoever names the zombies here
would name them on every such node, right or wrong.

What must be seen: no incident. A count is not a cause: it needs the walk on a core, or a read that
is slow.
"""

from necroscope.lab.cgroup import mount_points
from necroscope.lab.crash_loop import NEEDS, start_crash_loop
from necroscope.lab.measured import Measurements
from necroscope.lab.scenario import Scenario, Truth, reached
from necroscope.lab.stage import Stage
from necroscope.lab.zombies import read_statistics, speed_up


class ZombiesHarmless(Scenario):
    name = "zombies-harmless"
    twin = "zombie-memcg-walk"
    needs = NEEDS

    def prepare(self, stage: Stage) -> None:
        self.count = stage.random.randrange(20_000, 32_000)
        loop = start_crash_loop(stage)
        speed_up(stage, loop, self.count)

    def provoke(self, stage: Stage) -> None:
        root = mount_points(("memory",))["memory"]
        reader = stage.start(
            read_statistics,
            str(root / "memory.stat"),
            stage.random.uniform(0.5, 2.0),
            cpu=stage.core,
        )
        stage.hold(reader)

    def verify(self, stage: Stage, measured: Measurements) -> Truth:
        peak = measured.peak_share(stage.core, ("system",), 2.0)
        impact = {
            "memory_cgroups": reached(
                "memory cgroups tracked", measured.tracked_cgroups(), at_least=0.9 * self.count
            ),
            "system_share_peak_2s": reached(
                "highest system share over two seconds", peak, at_most=0.7
            ),
        }
        return Truth(impact)
