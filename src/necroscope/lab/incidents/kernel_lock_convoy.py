"""Job runners move processes between cgroups all at once, and all who touch a cgroup wait.

What it does: two hundred processes of a job runner move themselves from one cgroup to another and
back, by writing to cgroup.procs as a shell does. Each opens the file, which takes the lock of its
inode, and moves, which takes the one lock of all cgroups. They stand in line for hundreds of
milliseconds, and so does everyone else who touches a cgroup; no core need be busy for that.

Seen in the wild: sosy-lab/benchexec #1293 (all in cgroup_kn_lock_live, cores idle); Netflix
titus-executor #975 (cgroup_mutex).

What must be seen: tasks asleep for the lock, who gives it back, and that it is the job runner.
"""

import time
from pathlib import Path
from typing import ClassVar

from necroscope.lab.noted_waits import NotedWaits, WaitScenario
from necroscope.lab.scenario import KnownCulprit
from necroscope.lab.stage import Stage


def move(directories: list[str], pause_s: float, log: str) -> None:
    """From one cgroup to the next, as long as it lives; the log says how long a move took."""
    waits = NotedWaits(log)
    while True:
        for directory in directories:
            began = time.monotonic()
            # As a shell's `echo $$ > cgroup.procs` does: to open it so takes its inode's lock.
            Path(directory, "cgroup.procs").write_text("0")
            waits.note(time.monotonic() - began)
            time.sleep(pause_s)


class MovedProcesses(WaitScenario):
    """Processes of a job runner, which note how long they wait."""

    movers: ClassVar[int]
    pause_s: ClassVar[float]

    def prepare(self, stage: Stage) -> None:
        self.logs = [
            stage.watch(stage.scratch / f"waits-{number}") for number in range(self.movers)
        ]
        parts = [stage.invent("app") for _ in range(2)]
        self.directories = [
            str(stage.make_cgroup(f"{part}.slice").directory("memory")) for part in parts
        ]

    def provoke(self, stage: Stage) -> None:
        comm = stage.invent("tool")
        runners = [
            stage.start(move, self.directories, self.pause_s, log, comm=comm) for log in self.logs
        ]
        self.culprit = KnownCulprit(comm)
        stage.hold(*runners)


class KernelLockConvoy(MovedProcesses):
    name = "kernel-lock-convoy"
    cause = "kernel-lock-convoy"
    twin = "cgroup-jobs"
    seconds = 10
    movers = 220
    pause_s = 0.0
    worst_ms = 200
