"""What to act on where the task on the core is itself the one to change: its container, unit or
cgroup, else the process.
"""

from necroscope.analysis.report import Culprit, Origin
from necroscope.analysis.stacks import TaskShare
from necroscope.analysis.task_names import is_name


def origin_of(culprit: Culprit | None) -> Origin | None:
    if culprit is None or culprit.comm is None:
        return None
    if culprit.container:
        return Origin("container", culprit.container)
    return Origin("unit", culprit.unit) if culprit.unit else process_origin(culprit.comm)


def process_origin(comm: str | None) -> Origin | None:
    """None for a task whose name was not seen: there is nothing to look for."""
    return Origin("process", comm) if comm and is_name(comm) else None


def cgroup_or_process(task: TaskShare | Culprit) -> Origin | None:
    """A limit or a cache belongs to the cgroup; in the root cgroup there is only the process."""
    return (
        Origin("cgroup", task.cgroup)
        if task.cgroup and task.cgroup != "/"
        else process_origin(task.comm)
    )
