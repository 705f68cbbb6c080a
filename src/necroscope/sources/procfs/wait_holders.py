"""Who has what a task waits for, while it waits: /proc/locks names who has a lock on a file
(proc_locks(5)), of a lock of user space the number of its owner is known, as its own pid
namespace calls it, and of a process that is traced its tracer.

Asked for waits that have lasted long only, and within bounds: a node may have a hundred thousand
locks and threads. None of these files waits for the process it describes.
"""

import os
from pathlib import Path
from typing import Final, NamedTuple

from necroscope.model.names import clean
from necroscope.model.units import NS_PER_S
from necroscope.sources.procfs.blocked_tasks import (
    CloseReader,
    file_reader,
    parse_first_argument,
    parse_stack,
)
from necroscope.symbols.target_files import read_bounded

FUTEX, FILE_LOCK, STOPPED = "futex", "file_lock", "stopped"
_LEAST_NS: Final = NS_PER_S // 2
_LOCKS_BYTES: Final = 1 << 20
_FILE_BYTES: Final = 8192
_MOST_THREADS: Final = 256


class WaitHolder(NamedTuple):
    """A task that others wait for; `functions` are the kernel's that it is in, innermost first."""

    pid: int
    tid: int
    comm: str
    functions: tuple[str, ...]


class WaitHolders:
    """`read_closely` reads what takes CAP_SYS_PTRACE."""

    def __init__(
        self,
        proc: Path,
        read_closely: CloseReader | None = None,
    ) -> None:
        self._proc = proc
        self._read_closely = read_closely or file_reader(proc.parent)

    def find(self, kind: str, pid: int, known: int | None, waited_ns: int) -> WaitHolder | None:
        """`known` is the task if the kernel knows who; None where it cannot be found."""
        tid = self._thread(pid, known) if kind == FUTEX and known is not None else known
        if known is None and kind == FILE_LOCK and waited_ns >= _LEAST_NS:
            tid = parse_locks(read_bounded(self._proc / "locks", _LOCKS_BYTES) or b"", pid)
        if kind == STOPPED:
            tid = self._tracer(pid)
        return self.describe(tid) if tid is not None else None

    def descriptor(self, tid: int) -> int | None:
        """The first argument of the system call that a task is in."""
        try:
            return parse_first_argument(self._read_closely(tid, "syscall"))
        except OSError:
            return None

    def family(self, pid: int) -> tuple[int, list[int]]:
        """The parent of a process, and with it the other children of that; of process 1, to which
        orphans are given, none.
        """
        parent = self._status(pid).get(b"PPid", b"0")
        if not parent.isdigit() or int(parent) <= 1:
            return 0, []
        folder = self._proc / os.fsdecode(parent) / "task"
        threads = _names(folder)[:_MOST_THREADS]
        lists = [read_bounded(folder / name / "children", _FILE_BYTES) or b"" for name in threads]
        children = [int(word) for one in lists for word in one.split() if word.isdigit()]
        return int(parent), [int(parent), *children[:_MOST_THREADS]]

    def only_child(self, tid: int) -> WaitHolder | None:
        """Of a thread; of several it may wait for any."""
        listed = read_bounded(self._proc / f"{tid}/task/{tid}/children", _FILE_BYTES) or b""
        children = listed.split()
        return self.describe(int(children[0])) if len(children) == 1 else None

    def _tracer(self, pid: int) -> int | None:
        """Not a parent of another user: PTRACE_TRACEME makes it the tracer unasked, and the parent
        of an orphan is process 1.
        """
        traced = self._status(pid)
        tracer = traced.get(b"TracerPid", b"0")
        if not tracer.isdigit() or tracer == b"0":
            return None
        is_parent = tracer == traced.get(b"PPid")
        if is_parent and self._status(int(tracer)).get(b"Uid") != traced.get(b"Uid"):
            return None
        return int(tracer)

    def _status(self, tid: int) -> dict[bytes, bytes]:
        content = read_bounded(self._proc / str(tid) / "status", _FILE_BYTES) or b""
        return dict(line.split(b":\t", 1) for line in content.split(b"\n") if b":\t" in line)

    def describe(self, tid: int) -> WaitHolder | None:
        folder = self._proc / str(tid)
        fields = self._status(tid)
        if not fields:
            return None
        try:
            stack = parse_stack(self._read_closely(tid, "stack"))
        except OSError:
            stack = ()
        pid = int(fields.get(b"Tgid", b"0"))
        # The name as the kernel keeps it: `status` has it with escapes of its own.
        comm = read_bounded(folder / "comm", _FILE_BYTES) or b""
        return WaitHolder(pid, tid, clean(comm.rstrip(b"\n")), stack)

    def _thread(self, pid: int, number: int) -> int | None:
        """The thread of a process that wrote this number of its own into a lock, by which its
        pid namespace calls it; None if there is none: then it was not an owner.
        """
        folder = self._proc / str(pid) / "task"
        if (folder / str(number)).exists():
            return number
        wanted = str(number).encode()
        for name in _names(folder)[:_MOST_THREADS]:
            status = read_bounded(folder / name / "status", _FILE_BYTES) or b""
            ours = next((line for line in status.split(b"\n") if line.startswith(b"NSpid:")), b"")
            if len(ours.split()) > 2 and ours.split()[-1] == wanted:
                return int(name)
        return None


def parse_locks(data: bytes, waiter: int) -> int | None:
    """Of /proc/locks (fs/locks.c) the process that has the lock for which this one waits.

    `3: FLOCK  ADVISORY  WRITE 71 08:01:1234 0 EOF`, then `3: -> FLOCK ...` for each that waits. A
    lock of an open file description has no owner (-1).
    """
    holders: dict[bytes, int] = {}
    for line in data.split(b"\n"):
        fields = line.split()
        is_waiter = fields[1:2] == [b"->"]
        try:
            pid = int(fields[5 if is_waiter else 4])
        except (IndexError, ValueError):
            continue
        if not is_waiter:
            holders[fields[0]] = pid
        elif pid == waiter:
            holder = holders.get(fields[0], -1)
            return holder if holder > 0 else None
    return None


def _names(directory: Path) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return []
