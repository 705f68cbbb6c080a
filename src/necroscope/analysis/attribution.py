"""Who did it: the program that was on the core, and the path it was in. A task that only was
interrupted did nothing.
"""

from typing import Final

from necroscope.analysis.functions import Functions
from necroscope.analysis.node import Node
from necroscope.analysis.report import Culprit
from necroscope.analysis.stacks import INTERRUPT, Stacks, TaskShare
from necroscope.model.container_paths import parse_container, parse_unit

# A smaller share of the samples names no culprit.
_LEAST_SHARE: Final = 0.1


def culprit_of(
    now: Stacks,
    before: Stacks,
    node: Node,
    group: Functions | None,
    inside: Functions | None,
    is_interrupt: bool,
) -> Culprit | None:
    """The task with most of the samples in the group, or without a group the one whose use of the
    core grew most.
    """
    if group is not None:
        own = now.of(group, inside)
        found = own.tasks()
    else:
        own = now if is_interrupt else now.without(INTERRUPT)
        found = _grown(own, before)
    if not found or found[0].share < _LEAST_SHARE:
        return None
    return culprit_from(
        found[0], own.of_task(found[0].comm, found[0].cgroup, found[0].pid).path(), node
    )


def culprit_from(task: TaskShare, path: tuple[str, ...], node: Node) -> Culprit:
    """A task with the names of its unit and container."""
    container = container_of(task.cgroup, node)
    unit = parse_unit(task.cgroup) if task.cgroup else None
    return Culprit(
        task.comm, task.pid, task.cgroup, unit if not container else None, container, path
    )


def container_of(cgroup: str | None, node: Node) -> str | None:
    """As people call the container of a cgroup path, where the table `containers` knows its name;
    else its id.
    """
    found = parse_container(cgroup) if cgroup else None
    if found is None or found.container is None:
        return None
    rows = node.columns("containers")
    known = rows["name"][rows["container"] == found.container] if len(rows) else []
    name = next((str(name) for name in reversed(known) if name), None)
    return name or node.started_containers.get(found.container, found.container[:12])


def _grown(now: Stacks, before: Stacks) -> list[TaskShare]:
    """Tasks by how much more of the core they had than in quiet time: what ran all along did not
    start the incident.
    """
    if not before.elapsed_s:
        return now.tasks()

    def growth(task: TaskShare) -> float:
        usual = before.of_task(task.comm, task.cgroup, task.pid).total / before.elapsed_s
        return task.weight / max(now.elapsed_s, 1e-9) - usual

    return sorted(now.tasks(), key=growth, reverse=True)
