"""A pool of workers does one core's worth of work and may use all cores.

What it does: as many workers as in `cpuset-squeeze`, which want as long a turn each. They ask less
often, so that together they need one core, and they run wherever one is free.

Seen in the wild: any pool of workers whose runtime counts the cores that it may use.

What must be seen: nothing wrong. The workers take turns by themselves: none waits long for a core.
"""

from necroscope.lab.busy import busy_and_well
from necroscope.lab.incidents.cpuset_squeeze import WORK_S
from necroscope.lab.incidents.noisy_neighbour import answer
from necroscope.lab.measured import Measurements
from necroscope.lab.scenario import Scenario, Truth
from necroscope.lab.stage import Stage


class CpusetWithRoom(Scenario):
    name = "cpuset-with-room"
    twin = "cpuset-squeeze"
    seconds = 15

    def prepare(self, stage: Stage) -> None:
        self.log = stage.watch(stage.scratch / "waits")
        self.pool = stage.make_cgroup(f"{stage.invent('app')}.slice", controllers=("cpu", "memory"))

    def provoke(self, stage: Stage) -> None:
        comm, count = stage.invent("app"), stage.random.randrange(40, 60)
        stage.hold(
            *(
                stage.start(
                    answer, WORK_S, WORK_S * (count - 1), self.log, comm=comm, cgroup=self.pool
                )
                for _ in range(count)
            )
        )

    def verify(self, stage: Stage, measured: Measurements) -> Truth:
        return busy_and_well(stage, measured, least_busy=0.5)
