"""How long the softirq threads ran and waited: /proc/PID/schedstat and stat (fs/proc/base.c,
array.c) of ksoftirqd/* and napi/*.

run_delay is booked only when the wait ends, so a starving thread looks idle until then: that is why
its state is read too.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from necroscope.errors import SourceUnavailable
from necroscope.model.names import clean
from necroscope.model.reading import Moment, Reading, Row, Rows, Source
from necroscope.model.units import NS_PER_S
from necroscope.sources.kept_file import KeptFile, read_once

# Kernel threads by pid: the children of kthreadd (PID 2), from /proc/2/task/2/children, else by
# the parents of all processes.

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


_PREFIXES: Final = (b"ksoftirqd/", b"napi/")
_RESCAN_NS: Final = 60 * NS_PER_S


def parse(data: bytes) -> tuple[int, int, int]:
    """Time on a core in ns, time runnable without one in ns, and times it got one."""
    run_ns, delay_ns, slices = data.split()
    return int(run_ns), int(delay_ns), int(slices)


def parse_state(data: bytes) -> str:
    """The state's letter, field 3 of /proc/PID/stat; the name before it may hold spaces and
    brackets.
    """
    return chr(data[data.rindex(b")") + 2])


def parse_core(data: bytes) -> int:
    """The core it last ran on, field 39 of /proc/PID/stat."""
    return int(data[data.rindex(b")") + 2 :].split(None, 37)[36])


@dataclass(slots=True)
class SoftirqThread:
    """One thread with its two files kept open; `bound_cpu` is known for ksoftirqd, a napi thread
    may move.
    """

    pid: int
    comm: str
    bound_cpu: int | None
    schedstat: KeptFile
    stat: KeptFile
    before: tuple[int, int, int] | None = None

    @classmethod
    def of(cls, proc: Path, pid: int, comm: bytes) -> "SoftirqThread":
        _name, _slash, number = comm.partition(b"ksoftirqd/")
        bound_cpu = int(number) if number.isdigit() else None
        folder = proc / str(pid)
        return cls(
            pid, clean(comm), bound_cpu, KeptFile(folder / "schedstat"), KeptFile(folder / "stat")
        )

    def row(self, time_ns: int, elapsed_ns: int) -> Row | None:
        now = parse(self.schedstat.read_record())
        stat = self.stat.read_record()
        before, self.before = self.before, now
        run_ns, delay_ns, slices = (
            (0, 0, -1)
            if before is None
            else (now[0] - before[0], now[1] - before[1], now[2] - before[2])
        )
        if slices < 0:
            return None
        cpu = self.bound_cpu if self.bound_cpu is not None else parse_core(stat)
        return (
            time_ns,
            cpu,
            self.pid,
            self.comm,
            parse_state(stat),
            elapsed_ns,
            run_ns,
            delay_ns,
            slices,
        )

    def close(self) -> None:
        self.schedstat.close()
        self.stat.close()


class RunQueue(Source):
    """One row a thread and tick. Threads that come and go (napi threads are made by a sysctl) are
    found within a minute.
    """

    name = "runqueue"
    tables: tuple[str, ...] = ("runqueue",)

    def __init__(self, root: Path) -> None:
        self._proc = root / "proc"
        self._kernel_threads = KernelThreads(self._proc)
        self._threads: dict[int, SoftirqThread] = {}
        self._scanned_at_ns: int | None = None
        self._read_at: Moment | None = None

    def read(self, now: Moment) -> Reading:
        if self._scanned_at_ns is None or now.monotonic_ns - self._scanned_at_ns >= _RESCAN_NS:
            self._scan(now)
        elapsed_ns = now.monotonic_ns - (self._read_at or now).monotonic_ns
        rows: Rows = []
        for thread in list(self._threads.values()):
            try:
                row = thread.row(now.time_ns, elapsed_ns)
            except (SourceUnavailable, ValueError, IndexError):
                self._forget(thread)
            else:
                rows += () if row is None else (row,)
        self._read_at = now
        self._check_counted()
        return Reading({"runqueue": rows})

    def close(self) -> None:
        for thread in self._threads.values():
            thread.close()
        self._threads.clear()

    def _scan(self, now: Moment) -> None:
        found = self._kernel_threads.scan()
        for pid, comm in found.items():
            if pid not in self._threads and comm.startswith(_PREFIXES):
                self._threads[pid] = SoftirqThread.of(self._proc, pid, comm)
        self._scanned_at_ns = now.monotonic_ns

    def _forget(self, thread: SoftirqThread) -> None:
        """A thread that vanished: the next read looks for new ones."""
        thread.close()
        del self._threads[thread.pid]
        self._scanned_at_ns = None

    def _check_counted(self) -> None:
        if not self._threads:
            raise SourceUnavailable(
                f"no ksoftirqd thread can be read below {clean(str(self._proc))}", "run as root"
            )
        if all(thread.before == (0, 0, 0) for thread in self._threads.values()):
            # Every ksoftirqd ran once when its CPU came up, so zeros everywhere mean that nothing
            # counts.
            raise SourceUnavailable(
                "this kernel does not count run delay: schedstat is 0", "boot with `delayacct`"
            )
