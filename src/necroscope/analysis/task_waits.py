"""Single waits of tasks, from the table `waits`: rows of one wait that was seen to go on are made
one.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from necroscope.analysis.columns import ColumnArrays
from necroscope.analysis.wait_channels import (
    ANSWER,
    ANSWERED,
    ASLEEP,
    CHILD,
    CHILD_TO_END,
    DEVICE,
    FILE_LOCK,
    FUTEX,
    MEMORY_LIMIT,
    MMAP_LOCK,
    SEMAPHORE,
    STOPPED,
    UNANSWERED,
    UNREAD,
    UNSERVED,
    WRITEBACK,
    WaitChannel,
    channel_of,
    is_answer,
    is_release,
)
from necroscope.model.definitions import ORDINARY
from necroscope.model.span import Lasting
from necroscope.model.units import NS_PER_MS
from necroscope.model.wait_rows import last_of_each, number_waits

RUNNABLE: Final = "runnable"
# Shorter ones are many on a busy node, and are counted, not reported one by one.
COUNTED_NS: Final = 100 * NS_PER_MS
_MOST: Final = 5_000
_SHARED: Final = {
    DEVICE: "a device or file server",
    WRITEBACK: "dirty pages to be written",
    FILE_LOCK: "a lock on a file",
    SEMAPHORE: "a semaphore",
    UNANSWERED: "an answer",
    ANSWER: "a server to accept connections",
}


@dataclass(frozen=True, slots=True)
class Waiter:
    """A task in a wait; of who was in the way some of it may not be known."""

    comm: str
    pid: int
    tid: int
    cgroup: str | None
    policy: str | None


@dataclass(frozen=True, slots=True)
class TaskWait(Lasting):
    """`by` is who had the core longest, or who ended the sleep; `held_by` had what it slept for
    while it did, in `held_stack`. Of a wait for a core `stack` is the sleep it was woken from.
    Stacks are innermost first.
    """

    from_ns: int
    to_ns: int
    kind: str
    is_open: bool
    cpu: int
    task: Waiter
    priority: int
    stack: tuple[str, ...]
    by: Waiter | None
    by_ran_ns: int
    by_stack: tuple[str, ...]
    futex: int | None
    held_by: Waiter | None = None
    held_stack: tuple[str, ...] = ()

    @property
    def is_for_a_core(self) -> bool:
        return self.kind == RUNNABLE

    @property
    def is_ordinary(self) -> bool:
        """It expects its turn: neither batch nor idle work, nor nice to others."""
        return self.task.policy in ORDINARY and self.priority <= 0

    @property
    def channel(self) -> WaitChannel:
        is_lock = self.held_by is not None
        return channel_of(self.kind, self.stack, self.by_stack, is_lock=is_lock)

    @property
    def subject(self) -> str:
        """What may be one with others: a lock of user space is its process's, a device anyone's."""
        channel, process = self.channel, f"process {self.task.pid}"
        if channel.kind == FUTEX:
            # Another process can give back only what is in memory that both have.
            is_shared = self.is_given and self.by is not None and self.by.pid != self.task.pid
            place = "shared memory" if is_shared else process
            return f"the lock {self.futex:#x} of {place}" if self.futex else f"a lock of {place}"
        if channel.name == MMAP_LOCK:
            return f"{MMAP_LOCK} of {process}"
        if channel.kind == STOPPED:
            return process
        if channel.kind == UNREAD:
            reader = self.given_by
            return f"{reader.comm}[{reader.pid}] to read" if reader else f"a reader of {process}"
        if channel.kind == UNSERVED:
            server = self.held_by
            return f"{server.comm}[{server.pid}] to answer" if server else f"a server of {process}"
        if channel.kind == CHILD:
            return f"a child of {process}"
        if channel.kind == MEMORY_LIMIT:
            return f"room in memory cgroup {self.task.cgroup or f'of {process}'}"
        return _SHARED.get(channel.kind, channel.name)

    @property
    def given_by(self) -> Waiter | None:
        """Who had the lock until then, if it was one and was given back, or who answered; else who
        had it when it was last looked at.
        """
        return self.by if self.is_given and self.by is not None else self.held_by

    @property
    def is_given(self) -> bool:
        """Who ended it gave a lock back, read, or answered."""
        if self.is_open:
            return False
        is_asked = self.channel.kind in ANSWERED
        return is_release(self.kind, self.by_stack) or (is_asked and is_answer(self.by_stack))

    @property
    def stopped_by(self) -> str:
        """`stopped by its tracer gdb[71]`."""
        tracer = f" {self.held_by.comm}[{self.held_by.pid}]" if self.held_by else ""
        return f"{self.channel.words}{tracer}"

    @property
    def to_go_on(self) -> str:
        """What lets a process that is stopped go on."""
        pid, tracer = self.task.pid, self.held_by
        if "frozen" in self.channel.words:
            undo = "echo 0 > cgroup.freeze there (v1: THAWED > freezer.state)"
            return f"cat /proc/{pid}/cgroup, then {undo}, if it was frozen by mistake"
        if tracer is not None:
            return f"end its tracer, {tracer.comm} (pid {tracer.pid}), or let it continue"
        return f"kill -CONT {pid}  # if {self.task.comm} was stopped by mistake"

    def words(self) -> str:
        """`trainer[71] waited 0.95 s for core 1`."""
        goes_on = ", and still waits" if self.is_open else ""
        if self.channel.kind == STOPPED:
            still = ", and still is" if self.is_open else ""
            who = f"{self.task.comm}[{self.task.pid}]"
            return f"{who} did not run for {self.seconds:.2f} s, {self.stopped_by}{still}"
        if self.channel.kind == ASLEEP:
            return f"{self.task.comm}[{self.task.tid}] slept {self.seconds:.2f} s voluntarily"
        what = f"for core {self.cpu}" if self.is_for_a_core else self.channel.words
        if self.channel.kind in (UNREAD, UNANSWERED) and self.held_by is not None:
            is_child = self.channel.name == CHILD_TO_END
            other = "which is" if is_child else "whose other end is"
            what += f", {other} {self.held_by.comm}[{self.held_by.pid}]"
        if self.channel.kind == UNSERVED and self.held_by is not None:
            what += f" from {self.held_by.comm}[{self.held_by.pid}], which has not read the request"
        return f"{self.task.comm}[{self.task.tid}] waited {self.seconds:.2f} s {what}{goes_on}"


def task_waits(rows: ColumnArrays, least_ns: int = COUNTED_NS) -> tuple[TaskWait, ...]:
    """In order of time; of very many the longest."""
    if not len(rows):
        return ()
    rows = rows.at(rows["waited_ns"] >= least_ns)
    if len(rows) > _MOST:
        rows = rows.at(np.sort(np.argsort(-rows["waited_ns"])[:_MOST]))
    found: dict[int, TaskWait] = {}
    for place, number in enumerate(number_waits(_keys(rows))):
        wait = _wait({name: values[place] for name, values in rows.values.items()})
        before = found.get(number)
        if before is not None:
            wait = replace(
                wait,
                stack=wait.stack or before.stack,
                by=wait.by or before.by,
                by_ran_ns=max(wait.by_ran_ns, before.by_ran_ns),
                futex=wait.futex or before.futex,
                held_by=wait.held_by or before.held_by,
                held_stack=wait.held_stack or before.held_stack,
            )
        found[number] = wait
    return tuple(sorted(found.values(), key=lambda wait: wait.from_ns))


def whole_waits(rows: ColumnArrays) -> ColumnArrays:
    """Of each wait its last row."""
    return rows.at(np.array(last_of_each(_keys(rows)), dtype=np.int64))


def _keys(rows: ColumnArrays) -> Iterator[tuple[object, int, int, bool]]:
    tasks = zip(rows["tid"].tolist(), rows["kind"].tolist(), strict=True)
    times = rows["time"].tolist(), rows["waited_ns"].tolist(), rows["is_open"].tolist()
    return zip(tasks, *times, strict=True)


def _wait(row: dict[str, Any]) -> TaskWait:
    waited_ns = int(row["waited_ns"])
    by, held_by = None, None
    if np.isfinite(row["by_pid"]):
        numbers = int(row["by_pid"]), int(row["by_tid"])
        by = Waiter(row["by_comm"], *numbers, row["by_cgroup"], row["by_policy"])
    by_stack, held_stack = _names(row["by_stack"]), ()
    if row["is_open"] and row["kind"] != RUNNABLE:
        by, held_by, by_stack, held_stack = None, by, (), by_stack
    return TaskWait(
        int(row["time"]) - waited_ns,
        int(row["time"]),
        row["kind"],
        bool(row["is_open"]),
        int(row["cpu"]),
        Waiter(row["comm"], int(row["pid"]), int(row["tid"]), row["cgroup"], row["policy"]),
        int(row["priority"]),
        _names(row["stack"]),
        by,
        int(row["by_ran_ns"]) if np.isfinite(row["by_ran_ns"]) else 0,
        by_stack,
        int(row["futex"]) if np.isfinite(row["futex"]) else None,
        held_by,
        held_stack,
    )


def _names(stack: str | None) -> tuple[str, ...]:
    return tuple(stack.split(";")) if stack else ()
