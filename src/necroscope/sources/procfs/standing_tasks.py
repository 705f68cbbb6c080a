"""Waits where BPF cannot time them: processes that stood in state D, or were runnable without a
core, between two looks at /proc (proc(5), Documentation/scheduler/sched-stats.rst).

A look at all processes takes some ten microseconds each, so there is one every few seconds: only
long waits are seen, of processes and not of threads, and no task is named as being in the way.
"""

import os
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from necroscope.model.reading import Moment, Row, Rows
from necroscope.model.units import NS_PER_MS, NS_PER_S
from necroscope.sources.procfs.blocked_tasks import CloseReader, file_reader, parse_stack
from necroscope.symbols.task_description import parse_stat

PERIOD_NS: Final = 5 * NS_PER_S
_LONGEST_S: Final = 0.2
_FILE_BYTES: Final = 8192
_LEAST_NS: Final = 500 * NS_PER_MS
_PROCESSOR: Final = 36  # of /proc/PID/stat, after the name


class _StandingTask(NamedTuple):
    """A process at a look; `since_ns` is when it was first seen to stand like this."""

    state: str
    ran_ns: int
    runs: int
    since_ns: int


class StandingTasks:
    """Rows of `waits` from one look to the next."""

    def __init__(
        self,
        proc: Path,
        monotonic_s: Callable[[], float] = time.monotonic,
        read_closely: CloseReader | None = None,
    ) -> None:
        self._proc = proc
        self._read_closely = read_closely or file_reader(proc.parent)
        self._monotonic_s = monotonic_s
        self._seen: dict[int, _StandingTask] = {}
        self._next_pid = 0

    def look(self, now: Moment) -> Rows:
        """Where there are more processes than there is time, it goes on there at the next look:
        else one who has many could hide all that come behind them.
        """
        seen, self._seen = self._seen, {}
        until_s = self._monotonic_s() + _LONGEST_S
        rows: Rows = []
        pids = sorted(self._pids())
        first = bisect_left(pids, self._next_pid)
        pids = pids[first:] + pids[:first]
        for place, pid in enumerate(pids):
            if self._monotonic_s() > until_s:
                self._next_pid = pid
                self._seen |= {later: seen[later] for later in pids[place:] if later in seen}
                break
            stat = _content(self._proc / f"{pid}/stat")
            state = parse_stat(stat)[1]
            times = parse_schedstat(_content(self._proc / f"{pid}/schedstat"))
            if state not in ("D", "R") or times is None:
                continue
            before = seen.get(pid)
            stood = before is not None and before[:-1] == (state, *times)
            since_ns = before.since_ns if before is not None and stood else now.monotonic_ns
            self._seen[pid] = _StandingTask(state, *times, since_ns)
            waited_ns = now.monotonic_ns - since_ns
            if waited_ns >= _LEAST_NS:
                rows.append(self._row(pid, stat, waited_ns, now))
        return rows

    def _row(self, pid: int, stat: bytes, waited_ns: int, now: Moment) -> Row:
        comm, state, policy, priority = parse_stat(stat)
        cpu = int(stat.rpartition(b")")[2].split()[_PROCESSOR])
        stack = self._stack(pid) if state == "D" else ()
        return (
            *(now.time_ns, waited_ns, "blocked" if state == "D" else "runnable", True, cpu),
            *(pid, pid, comm or "", None, policy, priority or 0, None),
            *(";".join(stack) or None, None, None, None, None, None, None, None, None),
        )

    def _stack(self, pid: int) -> tuple[str, ...]:
        """Its functions; without CAP_SYS_ADMIN the one in which it sleeps (proc_pid_wchan(5))."""
        for name in ("stack", "wchan"):
            with suppress(OSError):
                content = self._read_closely(pid, name)
                channel = content.decode("ascii", "replace")
                if functions := parse_stack(content) or (channel,) * channel.isidentifier():
                    return functions
        return ()

    def _pids(self) -> Iterator[int]:
        with os.scandir(self._proc) as entries:
            yield from (int(entry.name) for entry in entries if entry.name.isdigit())


def parse_schedstat(data: bytes) -> tuple[int, int] | None:
    """How long it ran and how often it got a core, of `run_ns wait_ns runs`."""
    fields = data.split()
    return (int(fields[0]), int(fields[2])) if len(fields) == 3 else None


def _content(path: Path) -> bytes:
    """Nothing of a process that has gone or may not be asked."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(descriptor, _FILE_BYTES)
    except OSError:
        return b""
    finally:
        os.close(descriptor)
