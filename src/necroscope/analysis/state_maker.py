"""Who made the objects that the kernel walks: the process whose file is read, the one that holds
most, or the one that was in the kernel while they became more.
"""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np

from necroscope.analysis.attribution import culprit_from
from necroscope.analysis.case import Case
from necroscope.analysis.kernel_sections import KernelSection
from necroscope.analysis.populations import Population, StateHolder, holders
from necroscope.analysis.report import Culprit, Origin
from necroscope.analysis.stacks import INTERRUPT, Stacks, TaskShare
from necroscope.analysis.task_origin import origin_of
from necroscope.analysis.walked_names import likeness
from necroscope.model.span import Span, merge
from necroscope.model.units import NS_PER_S

_OF_PROCESS: Final = re.compile(r"/proc/(\d+)/")
# Which kind of object, counted by process, stands for a population.
_HELD_AS: Final = {
    "slab:vm_area_struct": "mappings",
    "threads": "threads",
    "slab:task_struct": "threads",
    "open-files": "open-files",
    "slab:filp": "open-files",
    "tcp-sockets": "open-files",
    "udp-sockets": "open-files",
    "unix-sockets": "open-files",
    "packet-sockets": "open-files",
    "slab:sock_inode_cache": "open-files",
    "slab:posix_timers_cache": "open-files",
}
# Of all that exist: less is not the one who made them.
_MOST: Final = 0.4
_VERY_MANY: Final = 20_000
_FAR_AHEAD: Final = 4
_GREW: Final = 0.01
_LEAST_SAMPLES: Final = 4
_LEAST_SHARE: Final = 0.3
_READ_NS: Final = 40 * NS_PER_S


def maker_of(
    case: Case, population: Population, section: KernelSection, culprit: Culprit | None
) -> tuple[Origin, str] | None:
    """What to act on, and in words how that is known."""
    for found in (
        _by_file(case, culprit),
        _by_holding(case, population),
        _by_growth(case, population, section, culprit),
    ):
        if found is not None:
            origin = origin_of(found[0])
            return (origin, found[1]) if origin is not None else None
    return None


def _by_file(case: Case, culprit: Culprit | None) -> tuple[Culprit, str] | None:
    """A file of one process describes that process alone."""
    for row in case.tasks:
        match = _OF_PROCESS.search(row["file"] or "")
        if match is None or (culprit is not None and row["comm"] != culprit.comm):
            continue
        owner = int(match[1])
        if culprit is not None and owner == culprit.pid:
            return None
        found = _task_of(case, owner)
        if found is not None:
            return found, f"the file that is read belongs to {found.comm}: {row['file']}"
    return None


def _by_holding(case: Case, population: Population) -> tuple[Culprit, str] | None:
    kind = next(
        (_HELD_AS[f] for name in population.names for f in (f"slab:{name}", name) if f in _HELD_AS),
        None,
    )
    if kind is None:
        return None
    end_ns = case.window[1] + 11 * NS_PER_S
    found = holders(case.node, kind, end_ns)
    if not found:
        return None
    most = found[0]
    # Mappings of a large process are counted in pieces: it has at least this many.
    is_far_ahead = most.count >= max(_VERY_MANY, *(_FAR_AHEAD * one.count for one in found[1:2]), 0)
    if most.count < _MOST * float(population.at(end_ns)) and not is_far_ahead:
        return None
    text = f"{most.comm} holds {most.count:,} {kind.replace('-', ' ')}"
    return _as_culprit(case, most), text


def _by_growth(
    case: Case, population: Population, section: KernelSection, culprit: Culprit | None
) -> tuple[Culprit, str] | None:
    """Who was in functions that bear the population's name while there became more, and not in the
    walk itself.
    """
    # Every program maps memory: that one did so meanwhile says nothing.
    if "vm_area_struct" in population.names:
        return None

    def makes(stacks: Stacks) -> Stacks:
        others = stacks.without(section.functions).without(INTERRUPT)
        if culprit is not None and culprit.comm is not None:
            others = others.without_task(culprit.comm)
        kernel = others._with(others.tree.is_kernel[others.samples.stack])  # noqa: SLF001
        return _in_functions_of(kernel, population)

    found = busiest_while_it_grew(case, population, makes)
    if found is None or found[0].share < _LEAST_SHARE:
        return None
    most, path = found
    grew = f"while the number of {population.words} grew, {most.comm} was in {_last(path)}"
    return culprit_from(most, path, case.node), grew


def busiest_while_it_grew(
    case: Case, population: Population, makes: Callable[[Stacks], Stacks]
) -> tuple[TaskShare, tuple[str, ...]] | None:
    """The task with most of the samples that `makes` keeps, of the stretches in which the count
    rose fastest, and its path; `share` is of those samples. None if they are too few to tell.
    """
    parts = [makes(case.node.stacks(span, None)) for span in _growth_spans(case, population)]
    weights: Counter[tuple[str, str | None]] = Counter()
    for own in parts:
        for task in own.tasks():
            weights[task.comm, task.cgroup] += task.weight
    if not weights:
        return None
    (comm, cgroup), weight = weights.most_common(1)[0]
    if weight < _LEAST_SAMPLES:
        return None
    own = max(parts, key=lambda part: part.of_task(comm, cgroup).total)
    task = next(one for one in own.tasks() if (one.comm, one.cgroup) == (comm, cgroup))
    share = weight / weights.total()
    return replace(task, weight=weight, share=share), own.of_task(comm, cgroup).path()


def _in_functions_of(kernel: Stacks, population: Population) -> Stacks:
    tree = kernel.tree
    is_like = np.array(
        [likeness([name], population) > 0 for name in _function_names(kernel)], dtype=bool
    )
    holds = np.append(tree.tree.on_path(np.append(is_like, False)[tree.tree.frame]), False)
    return kernel._with(holds[kernel.samples.stack])  # noqa: SLF001


def _function_names(kernel: Stacks) -> list[str]:
    names = kernel.tree.names
    return [names.name(i) for i in range(len(names.is_kernel()))]


def _growth_spans(case: Case, population: Population) -> list[Span]:
    """Stretches up to the end of the incident in which the count rose fastest, in order of time.
    What rose by a hundredth of all there are was made by someone.
    """
    end_ns = case.window[1] + 11 * NS_PER_S
    time_ns, count = population.time_ns, population.count
    rises = [
        ((m - n) / max(1, b - a), Span(int(max(a, b - _READ_NS)), int(b)), m - n)
        for a, b, n, m in zip(time_ns[:-1], time_ns[1:], count[:-1], count[1:], strict=True)
        if a < end_ns and m > n
    ]
    kept: list[Span] = []
    grown = 0.0
    for _, span, rise in sorted(rises, key=lambda one: -one[0]):
        if sum(b - a for a, b in kept) < _READ_NS:
            kept.append(span)
            grown += rise
    is_much = bool(kept) and grown >= max(1.0, _GREW * float(count.max()))
    return merge(sorted(kept)) if is_much else []


def _task_of(case: Case, pid: int) -> Culprit | None:
    """A process by its number: as it was sampled, captured or recorded as a holder."""
    sampled = [task for task in case.samples.machine.tasks() if task.pid == pid]
    sampled += [task for task in case.samples.machine_before.tasks() if task.pid == pid]
    if sampled:
        return culprit_from(sampled[0], (), case.node)
    for kind in ("mappings", "open-files", "threads"):
        for one in holders(case.node, kind, case.window[1] + 11 * NS_PER_S):
            if one.pid == pid:
                return _as_culprit(case, one)
    samples = case.samples.machine.samples
    rows = np.flatnonzero(samples.pid == pid)
    if not len(rows):
        samples = case.samples.machine_before.samples
        rows = np.flatnonzero(samples.pid == pid)
    if not len(rows):
        return None
    cgroup = int(samples.cgroup[rows[0]])
    task = TaskShare(
        samples.comms[int(samples.comm[rows[0]])],
        pid,
        None,
        samples.cgroups[cgroup] if cgroup >= 0 else None,
        len(rows),
        0.0,
    )
    return culprit_from(task, (), case.node)


def _as_culprit(case: Case, one: StateHolder) -> Culprit:
    return culprit_from(TaskShare(one.comm, one.pid, None, one.cgroup, 0, 0.0), (), case.node)


def _last(path: tuple[str, ...]) -> str:
    return path[-1] if path else "the kernel"
