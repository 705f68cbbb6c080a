"""What to act on where the task on the core is itself the one to change: its container, unit or cgroup, else the process."""

from necroscope.analysis.report import Culprit, Origin
from necroscope.analysis.stacks import TaskShare


def origin_of(culprit: Culprit | None) -> Origin | None:
    if culprit is None or culprit.comm is None:
        return None
    if culprit.container:
        return Origin("container", culprit.container)
    return Origin("unit", culprit.unit) if culprit.unit else Origin("process", culprit.comm)


def cgroup_or_process(task: TaskShare | Culprit) -> Origin:
    """A limit or a cache belongs to the cgroup; in the root cgroup there is only the process."""
    if task.cgroup and task.cgroup != "/":
        return Origin("cgroup", task.cgroup)
    return Origin("process", task.comm or "a task")
