"""Who stands still in the kernel: processes in state D, from /proc/PID/stat, with where they wait,
from /proc/PID/stack.

How often each was given a core, from /proc/PID/schedstat, tells a second look whether it has moved
at all meanwhile.

All processes are looked at, which takes milliseconds on a large node: for a moment that deserves
it, not for every second. None of these files waits for the process it describes.
"""

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from necroscope.model.names import clean

_MOST_TASKS: Final = 16
_MOST_OF_USER: Final = 12
_LONGEST_S: Final = 0.2
# clone, fork, vfork and clone3: a task there waits for a child that it made itself.
_FORKS: Final = {"x86_64": {56, 57, 58, 435}, "aarch64": {220, 435}}.get(os.uname().machine, {435})
_FILE_BYTES: Final = 8192
_STATE, _PROCESSOR = 0, 36  # fields of /proc/PID/stat after the name
_PF_KTHREAD: Final = 0x00200000
_FLAGS: Final = 6


# Of a process, the file below /proc/PID that takes CAP_SYS_PTRACE to read; OSError if it cannot be.
CloseReader = Callable[[int, str], bytes]


def file_reader(root: Path) -> CloseReader:
    """For a process that has the capability itself."""
    return lambda pid, name: _read(f"{root}/proc/{pid}/{name}")


class BlockedTask(NamedTuple):
    """`functions` are the kernel's, innermost first; None where this process may not ask
    (CAP_SYS_ADMIN).

    `runs` is how often it was given a core in its life; None where the kernel does not count that.
    """

    pid: int
    comm: str
    cpu: int
    functions: tuple[str, ...] | None
    first_argument: int | None
    runs: int | None


def read_blocked_tasks(
    root: Path,
    monotonic_s: Callable[[], float] = time.monotonic,
    read_closely: CloseReader | None = None,
) -> list[BlockedTask]:
    """At most 16, programs only: threads of the kernel wait like this by trade, and so does who
    called vfork. One user's do not take all places. `read_closely` reads what takes CAP_SYS_PTRACE.
    """
    read_closely = read_closely or file_reader(root)
    proc, until_s = root / "proc", monotonic_s() + _LONGEST_S
    found: list[BlockedTask] = []
    of_user: Counter[int] = Counter()
    for pid in _pids(proc):
        if len(found) == _MOST_TASKS or monotonic_s() > until_s:
            break
        folder = f"{proc}/{pid}"
        parsed = parse_stat(_content(f"{folder}/stat"))
        if parsed is not None:
            comm, cpu = parsed
            call = _call(read_closely, pid)
            user = _user(folder)
            if parse_call(call) in _FORKS or (user and of_user[user] == _MOST_OF_USER):
                continue
            of_user[user] += 1
            argument = parse_first_argument(call)
            runs = parse_runs(_content(f"{folder}/schedstat"))
            found.append(BlockedTask(pid, comm, cpu, _functions(read_closely, pid), argument, runs))
    return found


def parse_stat(data: bytes) -> tuple[str, int] | None:
    """Name and last core of a program in state D, None for any other."""
    start, end = data.find(b"("), data.rfind(b")")
    fields = data[end + 1 :].split()
    if (
        start < 0
        or end < 0
        or len(fields) <= _PROCESSOR
        or fields[_STATE] != b"D"
        or int(fields[_FLAGS]) & _PF_KTHREAD
    ):
        return None
    return clean(data[start + 1 : end]), int(fields[_PROCESSOR])


def parse_stack(data: bytes) -> tuple[str, ...]:
    """`[<0>] folio_wait_bit_common+0x13d/0x330` is folio_wait_bit_common."""
    names = (line.partition(b"] ")[2].partition(b"+")[0].strip() for line in data.splitlines())
    return tuple(clean(name) for name in names if name)


def parse_call(data: bytes) -> int | None:
    number = data.partition(b" ")[0]
    return int(number) if number.isdigit() else None


def _user(folder: str) -> int:
    try:
        return os.stat(folder).st_uid
    except OSError:
        return -1


def parse_first_argument(data: bytes) -> int | None:
    """Of `17 0x3 0x7f52...`, a system call's number and its arguments; None for a task that is in
    none.
    """
    fields = data.split()
    return int(fields[1], 16) if len(fields) > 2 and fields[0].isdigit() else None


def parse_runs(data: bytes) -> int | None:
    """The last of `run_ns wait_ns runs`."""
    fields = data.split()
    return int(fields[2]) if len(fields) == 3 else None


def _pids(proc: Path) -> Iterator[int]:
    with os.scandir(proc) as entries:
        yield from (int(entry.name) for entry in entries if entry.name.isdigit())


def _call(read_closely: CloseReader, pid: int) -> bytes:
    try:
        return read_closely(pid, "syscall")
    except OSError:
        return b""


def _functions(read_closely: CloseReader, pid: int) -> tuple[str, ...] | None:
    # The kernel lets a process open it that may open others' files, and refuses to be read
    # (proc_pid_stack, fs/proc/base.c).
    try:
        return parse_stack(read_closely(pid, "stack"))
    except PermissionError:
        return None
    except OSError:
        return ()


def _content(path: str) -> bytes:
    """What can be read of it: nothing of a process that has gone or may not be asked."""
    try:
        return _read(path)
    except OSError:
        return b""


def _read(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, _FILE_BYTES)
    finally:
        os.close(descriptor)
