"""A job runner that makes and fills cgroups as it should.

What it does: two processes move themselves between cgroups a few times per second, which is what
starts of containers and units amount to on a busy node.

Seen in the wild: every node that runs short jobs in cgroups of their own.

What must be seen: nothing wrong.
"""

from necroscope.lab.incidents.kernel_lock_convoy import MovedProcesses


class CgroupJobs(MovedProcesses):
    name = "cgroup-jobs"
    twin = "kernel-lock-convoy"
    seconds = 15
    movers = 2
    pause_s = 0.1
    worst_ms = 200
