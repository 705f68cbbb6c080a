"""Samples of a stretch of time on some cores, weighed by the functions in their stacks and by the
tasks they are of.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from necroscope.analysis.call_tree import CallTree
from necroscope.analysis.functions import UNNAMED, FunctionNames, Functions, functions
from necroscope.analysis.main_path import LONGEST_PATH, main_path, without_skid
from necroscope.analysis.task_names import shown_name
from necroscope.model.span import Span
from necroscope.model.units import NS_PER_S
from necroscope.stacks.samples import Samples, SampleTables, samples_of
from necroscope.stacks.tree import Flags, Numbers

# Entered from outside: what runs below these is not the work of the task that was interrupted.
SOFTIRQ: Final = functions(
    "__do_softirq handle_softirqs do_softirq do_softirq_own_stack run_ksoftirqd napi_threaded_poll*"
)
HARDIRQ: Final = functions(
    "asm_sysvec_* sysvec_* asm_common_interrupt common_interrupt do_IRQ handle_irq_event*"
    " smp_apic_timer_interrupt apic_timer_interrupt call_on_irqstack asm_call_irq_on_stack irq_exit"
    " irq_exit_rcu __irq_exit_rcu smp_call_function_interrupt el1h_64_irq el0t_64_irq el1_irq"
    " el0_irq gic_handle_irq __handle_domain_irq"
)
INTERRUPT: Final = SOFTIRQ | HARDIRQ
_HEAVIEST: Final = 300
_MOST_TASKS: Final = 12


@dataclass(frozen=True, slots=True)
class TaskShare:
    """What one program had: its threads, and its processes of the same name in the same cgroup, are
    taken together.

    Its name is that of the thread that had most.
    """

    comm: str
    pid: int | None
    tid: int | None
    cgroup: str | None
    weight: int
    share: float


class Stacks:
    """`elapsed_s` is the time of all selected cores together, `period_s` what one sample stands
    for.
    """

    def __init__(self, tree: CallTree, samples: Samples, elapsed_s: float, period_s: float) -> None:
        self.tree = tree
        self.samples = samples
        self.elapsed_s = elapsed_s
        self.period_s = period_s
        self.total = int(samples.weight.sum())
        self._tasks: dict[tuple[Functions | None, Functions | None], list[TaskShare]] = {}

    def where(
        self, cpus: Collection[int] | None, spans: Sequence[Span], cores: int = 1
    ) -> "Stacks":
        """Only samples of these cores (None: all of `cores`) within these stretches."""
        inside = np.zeros(len(self.samples.time_ns), dtype=bool)
        for from_ns, to_ns in spans:
            inside |= (self.samples.time_ns >= from_ns) & (self.samples.time_ns < to_ns)
        if cpus is not None:
            inside &= np.isin(self.samples.cpu, list(cpus))
        elapsed_s = (
            sum(to_ns - from_ns for from_ns, to_ns in spans)
            / NS_PER_S
            * (cores if cpus is None else len(cpus))
        )
        return self._with(inside, elapsed_s)

    def of(self, group: Functions, inside: Functions | None = None) -> "Stacks":
        """Only samples whose stack holds a function of the group."""
        return self._with(self.tree.holds(group, inside)[self.samples.stack])

    def without(self, group: Functions) -> "Stacks":
        return self._with(~self.tree.holds(group)[self.samples.stack])

    def of_task(self, comm: str, cgroup: str | None = None, pid: int | None = None) -> "Stacks":
        """Only samples of that name, in that cgroup if it is given; and all of that process,
        whatever its threads are called.
        """
        named = np.isin(
            self.samples.comm,
            [code for code, name in enumerate(self.samples.comms) if name == comm],
        )
        if cgroup is not None:
            named &= np.isin(
                self.samples.cgroup,
                [code for code, name in enumerate(self.samples.cgroups) if name == cgroup],
            )
        if pid is not None and pid > 0:
            named |= self.samples.pid == pid
        return self._with(named)

    def of_processes(self, pids: Collection[int]) -> "Stacks":
        return self._with(np.isin(self.samples.pid, list(pids)))

    def of_thread(self, tid: int) -> "Stacks":
        return self._with(self.samples.tid == tid)

    def without_task(self, comm: str) -> "Stacks":
        return self._with(
            ~np.isin(
                self.samples.comm,
                [code for code, name in enumerate(self.samples.comms) if name == comm],
            )
        )

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

    def tasks(
        self, group: Functions | None = None, inside: Functions | None = None
    ) -> list[TaskShare]:
        """Who it was, the heaviest first: names with their cgroup, and the process if one of them
        has most of it.
        """
        if (group, inside) not in self._tasks:
            self._tasks[group, inside] = _programs(
                (self if group is None else self.of(group, inside)).samples
            )
        return self._tasks[group, inside]

    def path(self, group: Functions | None = None) -> tuple[str, ...]:
        """The main path of these samples, outermost function first: kernel functions are the same
        below different callers.
        """
        stacks = self if group is None else self.of(group)
        paths = stacks.heaviest_paths(_HEAVIEST)
        if not paths:
            return ()
        names, is_kernel = self.tree.names, self.tree.names.is_kernel()
        kernel = [([f for f in path if is_kernel[f]], weight) for path, weight in paths]
        user = [([f for f in path if not is_kernel[f]], weight) for path, weight in paths]
        main = [*main_path(user)[-12:], *main_path(kernel)]
        return tuple(without_skid([names.name(function) for function in main])[-LONGEST_PATH:])

    def leaders(self, limit: int = 5) -> list[tuple[str, float]]:
        """Innermost functions and their share of all that ran, the heaviest first."""
        weights: Counter[str] = Counter()
        used, place = np.unique(self.tree.function[self.samples.stack], return_inverse=True)
        for function, weight in zip(
            used, np.bincount(place, weights=self.samples.weight) if len(used) else (), strict=True
        ):
            weights[self.tree.names.name(int(function)) if function >= 0 else "[lost]"] += int(
                weight
            )
        return [(name, weight / self.total) for name, weight in weights.most_common(limit)]

    def callers(self, group: Functions, limit: int = 5) -> list[tuple[str, float]]:
        """Functions that called into the group, innermost call, with their share of the group's
        samples.
        """
        is_in, parent = self.tree.is_in(group), self.tree.tree.parent
        found: Counter[str] = Counter()
        for stack, weight in self.of(group).weights():
            here = stack
            while not is_in[here]:
                here = int(parent[here])
            while is_in[here]:
                here = int(parent[here])
            function = int(self.tree.function[here])
            found[self.tree.names.name(function) if function >= 0 else "[user]"] += weight
        total = found.total()
        return [(name, weight / total) for name, weight in found.most_common(limit)]

    def heaviest_paths(self, most: int) -> list[tuple[list[int], int]]:
        """Functions of the heaviest stacks, outermost first, and their weight. Where a walk by
        frame pointers went astray, functions have no name and lead nowhere: they are left out.
        """
        heaviest = sorted(self.weights(), key=lambda one: -one[1])[:most]
        paths, name = self.tree.paths(stack for stack, _ in heaviest), self.tree.names.name
        named = ([number for number in path if name(number) != UNNAMED] for path in paths)
        return list(zip(named, (weight for _, weight in heaviest), strict=True))

    def weights(self) -> list[tuple[int, int]]:
        """The stacks that occur, and the weight of each."""
        stacks, place = np.unique(self.samples.stack, return_inverse=True)
        weights = np.bincount(place, weights=self.samples.weight, minlength=len(stacks)).astype(
            np.int64
        )
        return list(zip(stacks.tolist(), weights.tolist(), strict=True))

    def _weight(self, holds: Flags) -> int:
        return int(self.samples.weight[holds[self.samples.stack]].sum())

    def _as_time(self, weight: float) -> float:
        return min(1.0, weight * self.period_s / self.elapsed_s) if self.elapsed_s > 0 else 0.0

    def _with(self, rows: Flags, elapsed_s: float | None = None) -> "Stacks":
        kept = self.elapsed_s if elapsed_s is None else elapsed_s
        return Stacks(self.tree, self.samples.at(rows), kept, self.period_s)


def stacks_of(
    tables: SampleTables, names: FunctionNames, elapsed_s: float, period_s: float
) -> Stacks:
    """All samples of a window."""
    samples = samples_of(tables.samples)
    comms, cgroups = ([*map(shown_name, texts), "?"] for texts in (samples.comms, samples.cgroups))
    return Stacks(
        CallTree(tables, names), replace(samples, comms=comms, cgroups=cgroups), elapsed_s, period_s
    )


def _programs(samples: Samples) -> list[TaskShare]:
    total = int(samples.weight.sum())
    if not total:
        return []
    keys, place = np.unique(
        _process_names(samples) << 32 | (samples.cgroup + 1), return_inverse=True
    )
    weights = np.bincount(place, weights=samples.weight)
    found = []
    for row in np.argsort(-weights, kind="stable")[:_MOST_TASKS]:
        own = samples.at(place == row)
        pid, tid = _main(own.pid, own.weight), _main(own.tid, own.weight)
        # Both lists end with the name of what has none, which has code -1.
        comm, cgroup = samples.comms[int(keys[row] >> 32)], int(keys[row] & 0xFFFF_FFFF) - 1
        weight = int(weights[row])
        found.append(
            TaskShare(
                comm,
                pid,
                tid,
                samples.cgroups[cgroup] if cgroup >= 0 else None,
                weight,
                weight / total,
            )
        )
    return found


def _process_names(samples: Samples) -> Numbers:
    """Of each sample the name that has most of its process: threads are called by what they do. The
    idle task is one by core.
    """
    pairs, place = np.unique(samples.pid << 32 | (samples.comm + 1), return_inverse=True)
    pids = pairs >> 32
    order = np.lexsort((-np.bincount(place, weights=samples.weight), pids))
    known, first = np.unique(pids[order], return_index=True)
    heaviest = (pairs[order][first] & 0xFFFF_FFFF) - 1
    names: Numbers = np.where(
        samples.pid > 0, heaviest[np.searchsorted(known, samples.pid)], samples.comm
    )
    return names


def _main(values: Numbers, weights: Numbers) -> int | None:
    """The value that has more than half of the weight."""
    found, place = np.unique(values, return_inverse=True)
    sums = np.bincount(place, weights=weights)
    best = int(np.argmax(sums))
    return int(found[best]) if sums[best] > sums.sum() / 2 else None
