"""What another process, the recorder of a recording, costs: /proc/locks tells who it is,
/proc/PID/stat of it and its children.

proc_pid_stat(5), proc_locks(5). The pid in the lock file alone could be another process's: of a
boot ago, or of another pid namespace.
"""

import contextlib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

# `12: FLOCK  ADVISORY  WRITE 4711 fd:01:131090 0 EOF`
_FLOCK: Final = re.compile(
    r"^\d+: FLOCK\s+ADVISORY\s+WRITE (\d+) [0-9a-f]+:[0-9a-f]+:(\d+) ", re.MULTILINE
)
# Fields of /proc/PID/stat after the name in parentheses, which may hold spaces: ppid, then utime,
# stime, cutime, cstime, and rss.
_PARENT, _TIMES, _PAGES = 1, slice(11, 15), 21


@dataclass(frozen=True, slots=True)
class ProcessCost:
    """CPU time so far, ended children included, and memory now."""

    pid: int
    cpu_seconds: float
    resident_bytes: int


def holder_of(locks: str, inode: int) -> int | None:
    """The process that holds the lock of a file, if it can be seen from here (elsewhere the kernel
    shows pid 0).
    """
    return next(
        (int(pid) for pid, of in _FLOCK.findall(locks) if int(of) == inode and int(pid) > 0), None
    )


def parse_stat(text: str) -> tuple[int, float, int]:
    """Parent, CPU seconds, resident bytes."""
    fields = text.rpartition(")")[2].split()
    ticks = sum(map(int, fields[_TIMES]))
    return (
        int(fields[_PARENT]),
        ticks / os.sysconf("SC_CLK_TCK"),
        int(fields[_PAGES]) * os.sysconf("SC_PAGE_SIZE"),
    )


def read_cost(lock_file: Path, root: Path = Path("/")) -> ProcessCost | None:
    """None where no recorder runs, or none that can be seen from here."""
    try:
        locked_pid = int(lock_file.read_text("ascii"))
        pid = holder_of((root / "proc/locks").read_text("ascii"), lock_file.stat().st_ino)
        if pid != locked_pid:
            return None
        costs = [_read_stat(root, pid)]
        for child in _children(root, pid):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended since
                costs.append(_read_stat(root, child))
    except (OSError, ValueError, IndexError):
        return None
    return ProcessCost(pid, sum(cost[1] for cost in costs), sum(cost[2] for cost in costs))


def _read_stat(root: Path, pid: int) -> tuple[int, float, int]:
    return parse_stat((root / f"proc/{pid}/stat").read_text("utf-8", "replace"))


def _children(root: Path, pid: int) -> list[int]:
    """Its own children: the lookup process, and while a segment is sealed the child that does it.
    Needs CONFIG_PROC_CHILDREN.

    Each thread has those that it started, and the seal is started by the thread of the disk.
    """
    children: list[int] = []
    for file in (root / f"proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError, ValueError):  # the thread has ended
            children += [int(child) for child in file.read_text("ascii").split()]
    return children
