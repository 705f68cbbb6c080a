"""Who is on the core: at a trigger the tasks just sampled there are described at once, while they
live. Or who stands still.

For a task in a system call `/proc/PID/syscall` says only `running`; the samples' user registers
have the first argument, and the kernel frames name the call. A Python program's own frames come
from py-spy, if it is installed, without stopping the program.
"""

import contextlib
import fcntl
import json
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from necroscope.model.child import AbandonedChildren, Child, Start, read_piece, start_process
from necroscope.model.names import clean
from necroscope.model.reading import Gap, Row, Rows
from necroscope.recorder.triggers import NO_CPU, Trigger
from necroscope.sources.perf.sampler import Sampler
from necroscope.sources.perf.seen_tasks import SeenTask
from necroscope.sources.procfs.blocked_tasks import (
    BlockedTask,
    file_reader,
    read_blocked_tasks,
)
from necroscope.symbols.broker import Broker
from necroscope.symbols.messages import TaskDescription

_TASKS_PER_CORE: Final = 5
_CORES_WITHOUT_CPU: Final = 16
_STACK_LIMIT: Final = 4096
_PY_SPY_SECONDS: Final = 2.0
_PY_SPY_AT_ONCE: Final = 2
_END_SECONDS: Final = 0.5
# The kernel keeps this much in an unread pipe (fs.pipe-max-size); a dump that is longer
# is given up.
_PY_SPY_BYTES: Final = 1 << 20
_LARGEST_DESCRIPTOR: Final = 1 << 20
_NO_STACK: Final = (
    "tasks in state D have neither stack nor system call: /proc/PID/stack is refused (it needs"
    " CAP_SYS_ADMIN)"
)
# arch/x86/include/asm/syscall_wrapper.h and arch/arm64/include/asm/syscall_wrapper.h name a call's
# entry so.
_SYSCALL_PREFIXES: Final = (
    "__x64_sys_",
    "__arm64_sys_",
    "__ia32_sys_",
    "__do_sys_",
    "__se_sys_",
    "ksys_",
    "SyS_",
    "sys_",
)


class Describer(Protocol):
    def describe_task(self, pid: int, tid: int, first_argument: int | None) -> TaskDescription: ...


def syscall_of(kernel_functions: Sequence[str]) -> str | None:
    """The system call that these functions, innermost first, are in: the outermost entry function's
    name.
    """
    for function in reversed(kernel_functions):
        for prefix in _SYSCALL_PREFIXES:
            if function.startswith(prefix):
                return function.removeprefix(prefix)
    return None


def py_spy_command() -> list[str] | None:
    """A process's number is its last word; None where py-spy is not installed."""
    py_spy = shutil.which("py-spy") or shutil.which("py-spy", path=str(Path(sys.executable).parent))
    return [py_spy, "dump", "--nonblocking", "--json", "--pid"] if py_spy else None


def parse_py_spy(output: bytes, tid: int) -> str | None:
    """`py-spy dump --json`: the frames of this thread, else of the first, innermost first."""
    try:
        threads: list[dict[str, Any]] = json.loads(output)
        chosen = next(
            (thread for thread in threads if thread.get("os_thread_id") == tid), threads[0]
        )
        frames = [
            f"{frame['name']} ({frame.get('short_filename') or '?'}:{frame.get('line')})"
            for frame in chosen["frames"]
        ]
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
        return None
    return clean(";".join(frames), _STACK_LIMIT)


@dataclass(slots=True)
class _PySpy:
    child: Child
    row: Row
    tid: int


class TaskCapture:
    """Rows of `tasks` for a trigger; those that wait for py-spy come a tick later, by `collect`."""

    def __init__(
        self,
        sampler: Sampler,
        describer: Describer,
        root: Path,
        clock: Callable[[], float] = time.monotonic,
        broker: Broker | None = None,
    ) -> None:
        """`broker` has CAP_SYS_PTRACE, if this process has given it up."""
        self._root = root
        self._read_closely = broker.read if broker else file_reader(root)
        self._start: Start = broker.start if broker else start_process
        self._clock = clock
        self._sampler = sampler
        self._describer = describer
        self._py_spy = py_spy_command()
        self._waiting: list[_PySpy] = []
        self._abandoned = AbandonedChildren()
        self._runs: dict[int, int | None] = {}
        self._gaps: list[Gap] = []
        self._is_refusal_noted = False

    def capture(self, trigger: Trigger, time_ns: int) -> Rows:
        """A trigger that names no core captures the busiest task of each core, up to a bound."""
        if trigger.kind in ("io_blocked", "io_hung"):
            tasks = self._find_blocked(is_second_look=trigger.kind == "io_hung")
            self._note_refusal(tasks, time_ns)
            return [self._blocked_row(trigger, time_ns, task) for task in tasks]
        if trigger.cpu != NO_CPU:
            wanted = [
                (trigger.cpu, task)
                for task in self._sampler.seen_on(trigger.cpu, time_ns)[:_TASKS_PER_CORE]
            ]
        else:
            cpus = sorted(self._sampler.rings.cpus)
            seen = [(cpu, task) for cpu in cpus for task in self._sampler.seen_on(cpu, time_ns)[:1]]
            wanted = sorted(seen, key=lambda item: -item[1].samples)[:_CORES_WITHOUT_CPU]
        rows = (self._row(trigger, time_ns, cpu, task) for cpu, task in wanted)
        return [row for row in rows if row is not None]

    def collect(self) -> Rows:
        """Rows whose Python stack has come, or is not waited for any longer."""
        self._abandoned.reap()
        done = [
            waiting
            for waiting in self._waiting
            if waiting.child.status is not None or waiting.child.is_late
        ]
        for waiting in done:
            self._waiting.remove(waiting)
        return [self._finish(waiting) for waiting in done]

    def take_gaps(self) -> list[Gap]:
        gaps, self._gaps = self._gaps, []
        return gaps

    def close(self) -> Rows:
        """What is there by now; no process is left behind but one that hangs in the kernel."""
        rows = [self._finish(waiting) for waiting in self._waiting]
        self._abandoned.end(_END_SECONDS)
        return rows

    def _row(self, trigger: Trigger, time_ns: int, cpu: int, task: SeenTask) -> Row | None:
        """None if py-spy was asked: the row comes with its answer."""
        frames = self._sampler.frames_of(task.stack)
        syscall = syscall_of(
            [
                frame.function
                for frame in frames
                if frame.kind == "kernel" and frame.function is not None
            ]
        )
        details = self._describer.describe_task(
            task.pid, task.tid, _descriptor(task.first_argument) if syscall else None
        )
        stack = clean(";".join(frame.function or frame.module for frame in frames), _STACK_LIMIT)
        row: Row = (
            *(
                time_ns,
                cpu,
                trigger.kind,
                task.pid,
                task.tid,
                task.comm,
                task.samples,
                details.argv0,
                details.cgroup or task.cgroup,
            ),
            *(
                details.state,
                details.policy,
                details.priority,
                details.cpus_allowed,
                syscall,
                details.file,
                stack or None,
                None,
            ),
        )
        # Workers of Ray and others rename themselves: what they run tells.
        is_python = any(
            "python" in (name or "") for name in (details.executable, details.argv0, task.comm)
        )
        return None if is_python and self._ask_py_spy(row, task) else row

    def _find_blocked(self, *, is_second_look: bool) -> list[BlockedTask]:
        """Who stands; at the second look only who has not run since the first."""
        tasks = read_blocked_tasks(self._root, read_closely=self._read_closely)
        if is_second_look:
            return [
                task
                for task in tasks
                if task.runs is not None and self._runs.get(task.pid) == task.runs
            ]
        self._runs = {task.pid: task.runs for task in tasks}
        return tasks

    def _note_refusal(self, tasks: list[BlockedTask], time_ns: int) -> None:
        """Once: a recorder that lacks the capability lacks it to its end."""
        if not self._is_refusal_noted and any(task.functions is None for task in tasks):
            self._is_refusal_noted = True
            self._gaps.append(Gap("tasks", time_ns, time_ns, _NO_STACK))

    def _blocked_row(self, trigger: Trigger, time_ns: int, task: BlockedTask) -> Row:
        details = self._describer.describe_task(
            task.pid, task.pid, _descriptor(task.first_argument)
        )
        functions = task.functions or ()
        stack = clean(";".join(functions), _STACK_LIMIT)
        return (
            *(
                time_ns,
                task.cpu,
                trigger.kind,
                task.pid,
                task.pid,
                task.comm,
                0,
                details.argv0,
                details.cgroup,
                details.state or "D",
            ),
            *(
                details.policy,
                details.priority,
                details.cpus_allowed,
                syscall_of(functions),
                details.file,
                stack or None,
                None,
            ),
        )

    def _ask_py_spy(self, row: Row, task: SeenTask) -> bool:
        if self._py_spy is None or len(self._waiting) + len(self._abandoned) >= _PY_SPY_AT_ONCE:
            return False
        command = [*self._py_spy, str(task.pid)]
        try:
            child = Child(
                command,
                stdout=True,
                deadline_s=_PY_SPY_SECONDS,
                clock=self._clock,
                start=self._start,
            )
        except OSError:
            return False
        with contextlib.suppress(OSError):
            fcntl.fcntl(child.stdout, fcntl.F_SETPIPE_SZ, _PY_SPY_BYTES)
        self._waiting.append(_PySpy(child, row, task.tid))
        return True

    def _finish(self, waiting: _PySpy) -> Row:
        """One that does not end reads a program's files from a disk that does not answer."""
        output = None
        if waiting.child.status is not None:
            output = read_piece(waiting.child.stdout, _PY_SPY_BYTES)
        self._abandoned.leave(waiting.child)
        return (*waiting.row[:-1], parse_py_spy(output, waiting.tid) if output else None)


def _descriptor(argument: int | None) -> int | None:
    """A system call's first argument, if it may be the number of an open file."""
    return argument if argument is not None and argument < _LARGEST_DESCRIPTOR else None
