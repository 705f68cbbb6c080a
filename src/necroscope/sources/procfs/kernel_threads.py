"""Kernel threads by pid: the children of kthreadd (PID 2), from /proc/2/task/2/children, else by
the parents of all processes.
"""

from pathlib import Path
from typing import Final

from necroscope.errors import SourceUnavailable
from necroscope.sources.kept_file import read_once

_KTHREADD: Final = 2


def parse_parent(data: bytes) -> int:
    """The parent's pid, field 4 of /proc/PID/stat."""
    return int(data[data.rindex(b")") + 2 :].split(None, 2)[1])


class KernelThreads:
    """A scan reads only what is new since the last one: a thread keeps its name and its parent."""

    def __init__(self, proc: Path) -> None:
        self._proc = proc
        self._names: dict[int, bytes | None] = {}

    def scan(self) -> dict[int, bytes]:
        """Name of every kernel thread that can be seen."""
        if self._read(_KTHREADD, "comm") != b"kthreadd\n":
            raise SourceUnavailable(
                f"PID 2 below {self._proc} is not kthreadd: kernel threads cannot be seen",
                "run in the node's pid namespace (hostPID), with --host-root leading to its /proc",
            )
        children = self._children()
        pids = self._all_pids() if children is None else children
        self._names = {
            pid: self._names[pid] if pid in self._names else self._name(pid, children is not None)
            for pid in pids
        }
        return {pid: name for pid, name in self._names.items() if name is not None}

    def _name(self, pid: int, is_kernel_thread: bool) -> bytes | None:
        """None for a process, or for a thread that is gone already."""
        if not is_kernel_thread:
            stat = self._read(pid, "stat")
            if stat is None or b")" not in stat or parse_parent(stat) != _KTHREADD:
                return None
        comm = self._read(pid, "comm")
        return None if comm is None else comm.removesuffix(b"\n")

    def _children(self) -> list[int] | None:
        """None without CONFIG_PROC_CHILDREN."""
        try:
            return [int(pid) for pid in (self._proc / "2/task/2/children").read_bytes().split()]
        except OSError:
            return None

    def _all_pids(self) -> list[int]:
        return [int(entry.name) for entry in self._proc.iterdir() if entry.name.isdigit()]

    def _read(self, pid: int, file: str) -> bytes | None:
        return read_once(f"{self._proc}/{pid}/{file}")
