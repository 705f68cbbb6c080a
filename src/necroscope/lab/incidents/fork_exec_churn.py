"""An agent with a large address space that starts a small program for every question it has.

What it does: an agent with a good deal of private memory forks, and the child executes `du` on a
small directory, over and over. A fork copies the page tables of all that memory, only for exec to
throw them away a moment later; the exec builds a new address space, maps and faults in a program
and its libraries, and the exit takes it all down again. Microseconds of answer, milliseconds of
kernel.

Seen in the wild: kubernetes #61793, #10451 and #23008 (cadvisor's `du` and `find` for disk
accounting, forked from a large kubelet), containerd #5113 (exec probes that run `runc init`
hundreds of times per minute).

What must be seen: one core in system mode in fork, exec and exit (`copy_process`,
`copy_page_range`, `execve`, `exit_mmap`), spread over hundreds of processes that live for
milliseconds and whose names say nothing; the fork rate far above before. The culprit is the parent.
"""

import mmap
import os

from necroscope.lab.measured import Measurements
from necroscope.lab.scenario import KnownCulprit, KnownOrigin, Scenario, Truth, reached
from necroscope.lab.stage import Stage

_MADV_NOHUGEPAGE = 15


def fork_children(program: str, directory: str, resident_bytes: int) -> None:
    """Private pages of 4 KiB, so that there are page tables to copy."""
    resident = mmap.mmap(-1, resident_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    resident.madvise(_MADV_NOHUGEPAGE)
    for offset in range(0, resident_bytes, mmap.PAGESIZE):
        resident[offset] = 1
    nowhere = os.open(os.devnull, os.O_WRONLY)
    while True:
        child = os.fork()
        if child == 0:
            os.dup2(nowhere, 1)
            os.execv(program, [program, "-s", directory])
        os.waitpid(child, 0)


class ForkExecChurn(Scenario):
    name = "fork-exec-churn"
    cause = "fork-exec-churn"
    twin = "page-fault-storm"
    needs = ("/usr/bin/du",)

    def provoke(self, stage: Stage) -> None:
        directory = stage.scratch / stage.invent("app")
        directory.mkdir()
        cgroup = stage.make_cgroup(f"{stage.invent('agent')}-pod")
        self.path = cgroup.path
        resident_bytes = stage.random.randrange(24, 96) << 20
        self.agent = stage.start(
            fork_children,
            "/usr/bin/du",
            str(directory),
            resident_bytes,
            comm=stage.invent("agent"),
            cpu=stage.core,
            nice=-10,
            cgroup=cgroup,
        )
        stage.hold(self.agent)

    def verify(self, stage: Stage, measured: Measurements) -> Truth:
        forks = measured.growth("/proc/stat", "processes") / stage.seconds
        before_s = (measured.baseline[1] - measured.baseline[0]) / 1e9
        impact = {
            "system_share": reached(
                "system share of the core", measured.shares(stage.core)["system"], at_least=0.5
            ),
            "forks_per_s": reached("forks per second", forks, at_least=50),
            "forks_per_s_before": round(
                measured.growth("/proc/stat", "processes", measured.baseline) / before_s, 1
            ),
        }
        return Truth(
            impact,
            core=stage.core,
            mode="system",
            culprit=KnownCulprit(self.agent.comm, self.agent.pid, self.path, also=("du",)),
            origin=KnownOrigin("process", self.agent.comm, also=(self.path, "du")),
        )
