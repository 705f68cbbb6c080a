"""A pool of workers may run on one core only: they wait for each other while the other cores idle.

What it does: a service starts as many workers as a large machine has cores, but its affinity allows
one core. Each worker wants a tenth of a second of it at a time, and gets a turn among dozens.

Seen in the wild: pods with the static CPU policy whose runtime counts the machine's cores
(GOMAXPROCS before Go 1.25, OMP_NUM_THREADS); numactl and taskset left in a start script; Slurm jobs
that ask for one core per task and start a process pool in it.

What must be seen: many tasks that may run on few cores, each waiting for its turn there, with the
other cores mostly idle.
"""

from necroscope.lab.incidents.noisy_neighbour import answer
from necroscope.lab.measured import Measurements
from necroscope.lab.scenario import KnownCulprit, KnownOrigin, Scenario, Truth, reached
from necroscope.lab.stage import Stage

WORK_S = 0.1


class CpusetSqueeze(Scenario):
    name = "cpuset-squeeze"
    cause = "cpuset-squeeze"
    twin = "cpuset-with-room"

    def prepare(self, stage: Stage) -> None:
        self.log = stage.watch(stage.scratch / "waits")
        self.pool = stage.make_cgroup(f"{stage.invent('app')}.slice", controllers=("cpu", "memory"))

    def provoke(self, stage: Stage) -> None:
        comm = stage.invent("app")
        self.workers = [
            stage.start(answer, WORK_S, 0.05, self.log, comm=comm, cpu=stage.core, cgroup=self.pool)
            for _ in range(stage.random.randrange(40, 60))
        ]
        stage.hold(*self.workers)

    def verify(self, stage: Stage, measured: Measurements) -> Truth:
        worst_ms = measured.highest(self.log)
        idle = min(measured.shares(core)["idle"] for core in stage.other_cores)
        shares = measured.shares(stage.core)
        comm = self.workers[0].comm
        return Truth(
            {
                "worst_wait_ms": reached("longest wait in ms", worst_ms, at_least=300),
                "idle_others": reached("idle share of the other cores", idle, at_least=0.5),
            },
            core=stage.core,
            # A worker asks for its own CPU time again and again.
            mode=max(("user", "system"), key=lambda mode: shares[mode]),
            culprit=KnownCulprit(comm, cgroup=self.pool.path),
            origin=KnownOrigin("cgroup", self.pool.path, also=(comm,)),
        )
