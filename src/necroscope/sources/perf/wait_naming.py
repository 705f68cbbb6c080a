"""Rows of `waits`: records of the kernel with the names of cgroups and functions, and with who was
in the way.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from necroscope.model.reading import Moment, Row
from necroscope.sources.kept_file import read_once
from necroscope.sources.perf.wait_chain import AsleepFinder, ChainLink, WaitChain
from necroscope.sources.perf.wait_clients import WaitClients
from necroscope.sources.perf.wait_layout import STACK_BYTES
from necroscope.sources.perf.wait_records import WaitRecord, WaitTask, addresses
from necroscope.sources.procfs.blocked_tasks import CloseReader
from necroscope.sources.procfs.wait_holders import WaitHolder
from necroscope.symbols.target_files import read_bounded
from necroscope.symbols.task_cgroup import find_own_roots, parse_cgroup

_MOST_NAMES: Final = 8192
_FILE_BYTES: Final = 1 << 14
# What the kernel does to put a task to sleep and to wake it up: the same in every stack.
_SCHEDULING: Final = frozenset(("__schedule", "schedule", "schedule_timeout", "io_schedule"))
_WAKING: Final = "try_to_wake_up"
# Where an interrupt enters the kernel (asm/idtentry.h of x86, kernel/entry-common.c of arm64),
# and where softirqs run: who is current then has nothing to do with it.
_INTERRUPTS: Final = frozenset(
    (
        *("asm_common_interrupt", "common_interrupt"),
        *("el1_interrupt", "el0_interrupt", "el1_irq", "el0_irq", "el1h_64_irq", "el0t_64_irq"),
        *("__irq_exit_rcu", "irq_exit_rcu"),
        *("handle_softirqs", "__do_softirq", "do_softirq"),
    )
)
_INTERRUPT_PREFIXES: Final = ("asm_sysvec_", "sysvec_")
# Where a task itself enters the kernel, or begins there.
_ENTRIES: Final = ("entry_", "do_syscall_64", "el0_svc", "el0t_64_sync", "ret_from_fork", "kthread")
_JOB_STOP: Final = "do_signal_stop"
# A task that had the core for less than a tenth of the wait was one of many.
_SMALL_SHARE: Final = 10


def without_scheduling(functions: Sequence[str], *, is_waker: bool) -> str | None:
    """What a stack says of the wait, without the steps that all sleeps and all wake-ups share."""
    if is_waker and _WAKING in functions:
        functions = functions[functions.index(_WAKING) + 1 :]
    named = [name for name in functions if name not in _SCHEDULING]
    return ";".join(named) or None


def is_in_the_way(wait: WaitRecord, by_stack: str | None) -> bool:
    """Not a task that an interrupt fell on by chance, nor one that had the core for a moment."""
    if wait.kind == "runnable":
        return wait.other_ran_ns * _SMALL_SHARE >= wait.waited_ns
    names = (by_stack or "").split(";")
    is_cut = len(wait.other_stack) >= STACK_BYTES and not any(
        name.startswith(_ENTRIES) for name in names
    )
    return not is_cut and not any(
        name in _INTERRUPTS or name.startswith(_INTERRUPT_PREFIXES) for name in names
    )


def _as_task(holder: WaitHolder) -> WaitTask:
    return WaitTask(holder.tid, holder.pid, holder.comm, 0, None, 0, 0)


def _holding(wait: WaitRecord, holder: WaitHolder | None) -> tuple[WaitTask | None, str | None]:
    """Who has what the task still waits for, and where that one is meanwhile."""
    if holder is not None:
        return _as_task(holder), without_scheduling(holder.functions, is_waker=False)
    is_known = wait.other is not None and bool(wait.other.comm)
    return (wait.other if is_known else None), None


def signed(word: int) -> int | None:
    """An address as a column of 64 bits holds it."""
    return word - (1 << 64) if word >> 63 else word or None


class WaitNaming:
    """Rows of `waits`, with the cgroups' paths and the functions' names. `find_asleep` finds
    nothing until it is given.
    """

    def __init__(
        self,
        proc: Path,
        name_function: Callable[[int], str | None],
        read_closely: CloseReader | None = None,
    ) -> None:
        self._proc = proc
        self._name_function = name_function
        self._own_roots: Mapping[bytes, bytes] = find_own_roots(proc)
        self._chain = WaitChain(proc, read_closely)
        self._clients = WaitClients(proc, read_closely)
        self.find_asleep: AsleepFinder = lambda _: []
        self._functions: dict[int, str] = {}
        self._stacks: dict[tuple[bytes, bool], str | None] = {}
        self._cgroups: dict[tuple[int, int], str | None] = {}

    def close(self) -> None:
        self._chain.close()
        self._clients.close()

    def forget(self) -> None:
        self._functions.clear()
        self._stacks.clear()
        self._cgroups.clear()

    def rows(self, wait: WaitRecord, now: Moment, *, is_open: bool) -> list[Row]:
        """Of the wait, and if it goes on of who is asleep with what it waits for, or may be."""
        holder = self._chain.holder(wait) if is_open and wait.kind != "runnable" else None
        own = self._row(wait, now, holder, is_open=is_open)
        links: list[ChainLink] = []
        if holder is not None:
            links = self._chain.links(holder, wait.waited_ns, now.monotonic_ns)
        elif is_open:
            links = self._chain.naps(wait, self.find_asleep, now.monotonic_ns)
        return [own, *(self._link_row(link, wait.cpu, now) for link in links)]

    def client_rows(self, waits: Sequence[WaitRecord], now: Moment) -> list[Row]:
        """Of who waits for an answer of processes that are in these waits."""
        links = self._clients.find(waits, self.find_asleep, now.monotonic_ns)
        return [self._link_row(link, 0, now) for link in links]

    def _row(
        self, wait: WaitRecord, now: Moment, holder: WaitHolder | None, *, is_open: bool
    ) -> Row:
        task = wait.task
        by_stack = self._names(wait.other_stack, is_waker=True)
        other = wait.other if is_in_the_way(wait, by_stack) else None
        if is_open and wait.kind != "runnable":
            other, by_stack = _holding(wait, holder)
        by: Row = (None,) * 6
        if other is not None:
            policy = other.policy if wait.kind == "runnable" else None
            ran_ns = wait.other_ran_ns or None
            by = other.pid, other.tid, other.comm, self._cgroup(other), policy, ran_ns
        return (
            now.time_ns - now.monotonic_ns + wait.end_ns,
            wait.waited_ns,
            wait.kind,
            is_open,
            wait.cpu,
            task.pid,
            task.tid,
            task.comm,
            self._cgroup(task),
            task.policy,
            task.priority,
            task.cores_allowed,
            self._names(wait.stack, is_waker=False),
            signed(wait.address) if wait.kind in ("futex", "semaphore") else None,
            *by,
            by_stack,
        )

    def late_row(self, beat: WaitRecord, now: Moment) -> Row | None:
        """A row of `late_beats`. That a person stopped a program at a terminal (Ctrl-Z) is none."""
        task, stack = beat.task, self._names(beat.stack, is_waker=False)
        if stack is not None and stack.startswith(_JOB_STOP) and self._has_terminal(task.pid):
            return None
        return (
            now.time_ns - now.monotonic_ns + beat.end_ns,
            beat.waited_ns,
            beat.address,
            beat.other_ran_ns == 0,
            task.pid,
            task.tid,
            task.comm,
            self._cgroup(task),
            stack,
        )

    def _has_terminal(self, pid: int) -> bool:
        """`tty_nr` of proc_pid_stat(5)."""
        stat = read_bounded(self._proc / f"{pid}/stat", _FILE_BYTES) or b""
        return stat.rpartition(b")")[2].split()[4:5] not in ([], [b"0"])

    def _link_row(self, link: ChainLink, cpu: int, now: Moment) -> Row:
        """Its core is not known, so it is the waiter's."""
        peer, task = link.peer, _as_task(link.task)
        by: Row = (None,) * 6
        by_stack = None
        if peer is not None:
            by = peer.pid, peer.tid, peer.comm, self._cgroup(_as_task(peer)), None, None
            by_stack = without_scheduling(peer.functions, is_waker=False)
        return (
            *(now.time_ns, now.monotonic_ns - link.since_ns, link.kind, True, cpu),
            *(task.pid, task.tid, task.comm, self._cgroup(task), None, 0, None),
            *(without_scheduling(link.task.functions, is_waker=False), None, *by, by_stack),
        )

    def _names(self, stack: bytes, *, is_waker: bool) -> str | None:
        """Most tasks wait where others have waited."""
        if not stack:
            return None
        key = stack, is_waker
        if key not in self._stacks:
            if len(self._stacks) >= _MOST_NAMES:
                self._stacks.clear()
            functions = [self._function(at) for at in addresses(stack)]
            self._stacks[key] = without_scheduling(functions, is_waker=is_waker)
        return self._stacks[key]

    def _function(self, address: int) -> str:
        name = self._functions.get(address)
        if name is None:
            if len(self._functions) >= _MOST_NAMES:
                self._functions.clear()
            # A return address may be the first of the next function.
            name = self._functions[address] = self._name_function(address - 1) or f"{address:#x}"
        return name

    def _cgroup(self, task: WaitTask) -> str | None:
        """Of one that has gone, what was known of its cgroup."""
        key = (task.cgroup_id, 0) if task.cgroup_id > 1 else (0, task.pid)
        if key not in self._cgroups:
            if len(self._cgroups) >= _MOST_NAMES:
                self._cgroups.clear()
            content = read_once(f"{self._proc}/{task.pid}/cgroup")
            if content is None:
                return None
            self._cgroups[key] = parse_cgroup(content, self._own_roots)
        return self._cgroups[key]
