"""Who was on which core and in which function, counted from samples."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import Final

from necroscope.model.top_source import TopSample
from necroscope.views.format import literal
from necroscope.views.tui.screen import Function, OnCore

_Task = tuple[int, str, str | None]
_In = tuple[str | None, bool]
_Functions = dict[_In, int]
_FIELDS: Final = tuple(
    map(
        TopSample._fields.index,
        ("cpu", "pid", "comm", "cgroup", "kernel_function", "user_function"),
    )
)
_KEY: Final = itemgetter(*_FIELDS)


def tasks_by_cpu(samples: Iterable[TopSample], limit: int) -> dict[int, tuple[OnCore, ...]]:
    """The tasks with most samples on each core, most first."""
    # Counting in C first: a second of 128 busy cores is twelve thousand samples, but few different
    # ones.
    counted = Counter(map(_KEY, samples))
    by_cpu: defaultdict[int, defaultdict[_Task, _Functions]] = defaultdict(
        lambda: defaultdict(dict)
    )
    for (cpu, pid, comm, cgroup, kernel_function, user_function), times in counted.items():
        functions = by_cpu[cpu][pid, comm, cgroup]
        innermost = (user_function, False) if kernel_function is None else (kernel_function, True)
        functions[innermost] = functions.get(innermost, 0) + times
    return {cpu: _most(tasks, limit) for cpu, tasks in by_cpu.items()}


def functions_of(samples: Iterable[TopSample], limit: int) -> tuple[Function, ...]:
    """The innermost functions with most samples, most first; code without a symbol is left out, but
    counts in the shares.
    """
    counted = Counter(
        (one.user_function, False) if one.kernel_function is None else (one.kernel_function, True)
        for one in samples
    )
    total = counted.total()
    named = [
        (name, in_kernel, times)
        for (name, in_kernel), times in counted.most_common()
        if name is not None
    ]
    return tuple(
        Function(literal(name), in_kernel, times / total)
        for name, in_kernel, times in named[:limit]
    )


def _most(tasks: Mapping[_Task, _Functions], limit: int) -> tuple[OnCore, ...]:
    totals = {task: sum(functions.values()) for task, functions in tasks.items()}
    total = sum(totals.values())
    ranked = sorted(totals, key=lambda task: (-totals[task], task[0]))[:limit]
    return tuple(_on_core(task, tasks[task], totals[task] / total) for task in ranked)


def _on_core(task: _Task, functions: _Functions, share: float) -> OnCore:
    pid, comm, cgroup = task
    name, in_kernel = max(functions, key=functions.__getitem__)
    return OnCore(
        literal(comm),
        pid,
        None if cgroup is None else literal(cgroup),
        share,
        None if name is None else literal(name),
        in_kernel,
    )
