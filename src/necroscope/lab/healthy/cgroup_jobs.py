"""A job runner that makes and fills cgroups as it should.

What it does: two processes move themselves between cgroups a few times per second, which is what
starts of containers and units amount to on a busy node.

Seen in the wild: every node that runs short jobs in cgroups of their own.

What must be seen: nothing wrong.
"""

from necroscope.lab.incidents.kernel_lock_convoy import MovedProcesses
from necroscope.lab.measured import Measured
from necroscope.lab.scenario import Truth, reached
from necroscope.lab.stage import Stage


class CgroupJobs(MovedProcesses):
    name = "cgroup-jobs"
    twin = "kernel-lock-convoy"
    seconds = 15
    movers = 2
    pause_s = 0.1

    def verify(self, stage: Stage, measured: Measured) -> Truth:  # noqa: ARG002
        worst_ms = max(map(measured.highest, self.logs))
        return Truth({"worst_wait_ms": reached("longest wait in ms", worst_ms, at_most=200)})
