"""Samples of a stretch of time on some cores, weighed by the functions in their stacks and by the tasks they are of."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from necroscope.analysis.call_tree import CallTree, Numbers
from necroscope.analysis.functions import Flags, FunctionNames, Functions, functions
from necroscope.analysis.main_path import LONGEST_PATH, main_path, without_skid
from necroscope.analysis.recording import SampleTables
from necroscope.analysis.sample_columns import SampleColumns, codes, numbers
from necroscope.model.units import NS_PER_S

Span = tuple[int, int]
# Entered from outside: what runs below these is not the work of the task that was interrupted.
SOFTIRQ: Final = functions("__do_softirq handle_softirqs do_softirq do_softirq_own_stack run_ksoftirqd napi_threaded_poll*")
HARDIRQ: Final = functions(
    "asm_sysvec_* sysvec_* asm_common_interrupt common_interrupt do_IRQ handle_irq_event* smp_apic_timer_interrupt"
    " apic_timer_interrupt call_on_irqstack asm_call_irq_on_stack irq_exit irq_exit_rcu"
    " __irq_exit_rcu smp_call_function_interrupt"
    " el1h_64_irq el0t_64_irq el1_irq el0_irq gic_handle_irq __handle_domain_irq"
)
INTERRUPT: Final = SOFTIRQ | HARDIRQ
_HEAVIEST: Final = 300
_MOST_TASKS: Final = 12


@dataclass(frozen=True, slots=True)
class TaskShare:
    """What one program had: its threads, and its processes of the same name in the same cgroup, are taken together.

    Its name is that of the thread that had most.
    """

    comm: str
    pid: int | None
    tid: int | None
    cgroup: str | None
    weight: int
    share: float


class Stacks:
    """`elapsed_s` is the time of all selected cores together, `period_s` what one sample stands for."""

    def __init__(
        self, tree: CallTree, columns: SampleColumns, comms: list[str], cgroups: list[str], elapsed_s: float, period_s: float
    ) -> None:
        self.tree = tree
        self.columns = columns
        self.elapsed_s = elapsed_s
        self.period_s = period_s
        self.total = int(columns.weight.sum())
        self._comms = comms
        self._cgroups = cgroups
        self._tasks: dict[tuple[Functions | None, Functions | None], list[TaskShare]] = {}

    def where(self, cpus: Collection[int] | None, spans: Sequence[Span], cores: int = 1) -> "Stacks":
        """Only samples of these cores (None: all of `cores`) within these stretches."""
        inside = np.zeros(len(self.columns.time), dtype=bool)
        for from_ns, to_ns in spans:
            inside |= (self.columns.time >= from_ns) & (self.columns.time < to_ns)
        if cpus is not None:
            inside &= np.isin(self.columns.cpu, list(cpus))
        elapsed_s = sum(to_ns - from_ns for from_ns, to_ns in spans) / NS_PER_S * (cores if cpus is None else len(cpus))
        return self._with(inside, elapsed_s)

    def of(self, group: Functions, inside: Functions | None = None) -> "Stacks":
        """Only samples whose stack holds a function of the group."""
        return self._with(self.tree.holds(group, inside)[self.columns.stack])

    def without(self, group: Functions) -> "Stacks":
        return self._with(~self.tree.holds(group)[self.columns.stack])

    def of_task(self, comm: str, cgroup: str | None = None, pid: int | None = None) -> "Stacks":
        """Only samples of that name, in that cgroup if it is given; and all of that process, whatever its threads are called."""
        named = np.isin(self.columns.comm, [code for code, name in enumerate(self._comms) if name == comm])
        if cgroup is not None:
            named &= np.isin(self.columns.cgroup, [code for code, name in enumerate(self._cgroups) if name == cgroup])
        if pid is not None and pid > 0:
            named |= self.columns.pid == pid
        return self._with(named)

    def without_task(self, comm: str) -> "Stacks":
        return self._with(~np.isin(self.columns.comm, [code for code, name in enumerate(self._comms) if name == comm]))

    def share(self, group: Functions, inside: Functions | None = None) -> float:
        """Of all that ran: samples with a function of the group anywhere in their stack."""
        return self._weight(self.tree.holds(group, inside)) / self.total if self.total else 0.0

    def self_share(self, group: Functions) -> float:
        """Of all that ran: samples whose innermost function is of the group."""
        return self._weight(self.tree.is_in(group)) / self.total if self.total else 0.0

    def time_share(self, group: Functions, inside: Functions | None = None) -> float:
        """Of the time of these cores, idle time included."""
        return self._as_time(self._weight(self.tree.holds(group, inside)))

    @property
    def busy_share(self) -> float:
        """Of the time of these cores: how much of it was sampled as work."""
        return self._as_time(self.total)

    @property
    def kernel_share(self) -> float:
        """Of all that ran: samples in the kernel."""
        return self._weight(self.tree.is_kernel) / self.total if self.total else 0.0

    def tasks(self, group: Functions | None = None, inside: Functions | None = None) -> list[TaskShare]:
        """Who it was, the heaviest first: names with their cgroup, and the process if one of them has most of it."""
        if (group, inside) not in self._tasks:
            columns = self.columns if group is None else self.columns.at(self.tree.holds(group, inside)[self.columns.stack])
            self._tasks[group, inside] = self._programs(columns)
        return self._tasks[group, inside]

    def _programs(self, columns: SampleColumns) -> list[TaskShare]:
        total = int(columns.weight.sum())
        if not total:
            return []
        keys, place = np.unique(_process_names(columns) << 32 | (columns.cgroup + 1), return_inverse=True)
        weights = np.bincount(place, weights=columns.weight)
        found = []
        for row in np.argsort(-weights, kind="stable")[:_MOST_TASKS]:
            own = columns.at(place == row)
            pid, tid = _main(own.pid, own.weight), _main(own.tid, own.weight)
            # Both lists end with the name of what has none, which has code -1.
            comm, cgroup = self._comms[int(keys[row] >> 32)], int(keys[row] & 0xFFFF_FFFF) - 1
            weight = int(weights[row])
            found.append(TaskShare(comm, pid, tid, self._cgroups[cgroup] if cgroup >= 0 else None, weight, weight / total))
        return found

    def path(self, group: Functions | None = None) -> tuple[str, ...]:
        """The main path of these samples, outermost function first: kernel functions are the same below different callers."""
        columns = self.columns if group is None else self.columns.at(self.tree.holds(group)[self.columns.stack])
        paths = [(self.tree.path(stack), weight) for stack, weight in _heaviest(columns)]
        if not paths:
            return ()
        is_kernel = self.tree.names.is_kernel()
        kernel = [([f for f in path if f >= 0 and is_kernel[f]], weight) for path, weight in paths]
        user = [([f for f in path if f >= 0 and not is_kernel[f]], weight) for path, weight in paths]
        main = [*main_path(user)[-12:], *main_path(kernel)]
        return tuple(without_skid([self.tree.names.name(function) for function in main])[-LONGEST_PATH:])

    def leaders(self, limit: int = 5) -> list[tuple[str, float]]:
        """Innermost functions and their share of all that ran, the heaviest first."""
        weights: Counter[str] = Counter()
        used, place = np.unique(self.tree.function[self.columns.stack], return_inverse=True)
        for function, weight in zip(used, np.bincount(place, weights=self.columns.weight) if len(used) else (), strict=True):
            weights[self.tree.names.name(int(function)) if function >= 0 else "[lost]"] += int(weight)
        return [(name, weight / self.total) for name, weight in weights.most_common(limit)]

    def callers(self, group: Functions, limit: int = 5) -> list[tuple[str, float]]:
        """Functions that called into the group, innermost call, with their share of the group's samples."""
        stacks, weights = self._unique(self.tree.holds(group))
        is_in = self.tree.is_in(group)
        found: Counter[str] = Counter()
        for stack, weight in zip(stacks.tolist(), weights.tolist(), strict=True):
            here = stack
            while not is_in[here]:
                here = int(self.tree.parent[here])
            while is_in[here]:
                here = int(self.tree.parent[here])
            function = int(self.tree.function[here])
            found[self.tree.names.name(function) if function >= 0 else "[user]"] += weight
        total = found.total()
        return [(name, weight / total) for name, weight in found.most_common(limit)]

    def _unique(self, holds: Flags) -> tuple[Numbers, NDArray[np.int64]]:
        columns = self.columns.at(holds[self.columns.stack])
        stacks, place = np.unique(columns.stack, return_inverse=True)
        return stacks, np.bincount(place, weights=columns.weight, minlength=len(stacks)).astype(np.int64)

    def _weight(self, holds: Flags) -> int:
        return int(self.columns.weight[holds[self.columns.stack]].sum())

    def _as_time(self, weight: float) -> float:
        return min(1.0, weight * self.period_s / self.elapsed_s) if self.elapsed_s > 0 else 0.0

    def _with(self, rows: Flags, elapsed_s: float | None = None) -> "Stacks":
        kept = self.elapsed_s if elapsed_s is None else elapsed_s
        return Stacks(self.tree, self.columns.at(rows), self._comms, self._cgroups, kept, self.period_s)


def stacks_of(tables: SampleTables, names: FunctionNames, elapsed_s: float, period_s: float) -> Stacks:
    """All samples of a window."""
    tree = CallTree(tables, names)
    samples = tables.samples
    time, cpu, pid, tid = (numbers(samples, name) for name in ("time", "cpu", "pid", "tid"))
    comm, comms = codes(samples, "comm")
    cgroup, cgroups = codes(samples, "cgroup")
    stack = numbers(samples, "stack")
    stack = np.where(stack < 0, len(tree.parent) - 1, stack)
    columns = SampleColumns(time, cpu, pid, tid, comm, cgroup, stack, numbers(samples, "weight"))
    return Stacks(tree, columns, comms, cgroups, elapsed_s, period_s)


def _process_names(columns: SampleColumns) -> Numbers:
    """Of each sample the name that has most of its process: threads are called by what they do. The idle task is one by core."""
    pairs, place = np.unique(columns.pid << 32 | (columns.comm + 1), return_inverse=True)
    pids = pairs >> 32
    order = np.lexsort((-np.bincount(place, weights=columns.weight), pids))
    known, first = np.unique(pids[order], return_index=True)
    heaviest = (pairs[order][first] & 0xFFFF_FFFF) - 1
    names: Numbers = np.where(columns.pid > 0, heaviest[np.searchsorted(known, columns.pid)], columns.comm)
    return names


def _main(values: Numbers, weights: Numbers) -> int | None:
    """The value that has more than half of the weight."""
    found, place = np.unique(values, return_inverse=True)
    sums = np.bincount(place, weights=weights)
    best = int(np.argmax(sums))
    return int(found[best]) if sums[best] > sums.sum() / 2 else None


def _heaviest(columns: SampleColumns) -> list[tuple[int, int]]:
    stacks, place = np.unique(columns.stack, return_inverse=True)
    weights = np.bincount(place, weights=columns.weight, minlength=len(stacks))
    order = np.argsort(-weights, kind="stable")[:_HEAVIEST]
    return [(int(stacks[row]), int(weights[row])) for row in order]
