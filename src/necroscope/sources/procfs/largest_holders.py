"""Which processes hold most files, threads and memory mappings: /proc/PID/fd, task and maps, a part
of all processes at each look.

Two numbers cost a stat(2) each: the size of /proc/PID/fd is the number of open files since 6.2
(commit f1f1f2569901), the links of /proc/PID/task are its threads. Mappings have to be read line by
line, under the process's own lock: for some milliseconds per look, the processes that grew most
first.
"""

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from necroscope.model.names import clean
from necroscope.sources.kept_file import read_once

# Of each kind the largest are reported, if they hold this many.
MOST_HOLDERS: Final = 3
LEAST: Final = {"open-files": 500, "threads": 200, "mappings": 2_000}
# At a look: some ten microseconds for each process.
_PROCESSES: Final = 250
_MAPS_S: Final = 0.008
# Once, when nothing is known yet.
_FIRST_MAPS_S: Final = 0.05
_PIECE_BYTES: Final = 1 << 16
_PAGES_GROWN: Final = 256
_CGROUP_BYTES: Final = 4096


@dataclass(frozen=True, slots=True)
class Holder:
    """A process that holds more of a kind than most."""

    kind: str
    count: int
    pid: int
    comm: str
    cgroup: str | None


@dataclass(slots=True)
class _Process:
    files: int | None = None
    threads: int = 0
    mappings: int = 0
    pages: int = 0
    # When its mappings were counted.
    pages_counted: int = 0


@dataclass(slots=True)
class _MapsCount:
    """A count of mappings that goes on at the next look."""

    pid: int
    descriptor: int
    pages: int
    lines: int = 0


@dataclass(slots=True)
class LargestHolders:
    """Told again at each look, from what is known by then; the whole of /proc is known after some
    looks.
    """

    root: Path
    clock: Callable[[], float] = time.monotonic
    _known: dict[int, _Process] = field(default_factory=dict)
    _round: list[int] = field(default_factory=list)
    _counting: _MapsCount | None = None
    _maps_s: float = _FIRST_MAPS_S

    def look(self, are_mappings_many: bool) -> list[Holder]:
        """Mappings are counted only where there are many in all."""
        for pid in self._next_pids():
            self._measure(pid)
        if are_mappings_many:
            self._count_mappings(self.clock() + self._maps_s)
            self._maps_s = _MAPS_S
        return [holder for kind in LEAST for holder in self._largest(kind)]

    @property
    def is_round_over(self) -> bool:
        """Whether the last look was at the last processes of all."""
        return not self._round

    def close(self) -> None:
        if self._counting is not None:
            os.close(self._counting.descriptor)
            self._counting = None

    def _next_pids(self) -> list[int]:
        if not self._round:
            self._round = sorted(self._pids(), reverse=True)
            alive = set(self._round)
            self._known = {pid: one for pid, one in self._known.items() if pid in alive}
        part, self._round = self._round[:_PROCESSES], self._round[_PROCESSES:]
        return part

    def _pids(self) -> Iterator[int]:
        with os.scandir(self.root / "proc") as entries:
            yield from (int(entry.name) for entry in entries if entry.name.isdigit())

    def _measure(self, pid: int) -> None:
        base = f"{self.root}/proc/{pid}"
        try:
            files = os.stat(f"{base}/fd").st_size
            threads = os.stat(f"{base}/task").st_nlink - 2
        except OSError:
            self._known.pop(pid, None)
            return
        statm = (read_once(f"{base}/statm") or b"0").split()
        one = self._known.setdefault(pid, _Process())
        # Before 6.2 the size is 0 for every process, and ours has files open.
        one.files, one.threads, one.pages = files or None, threads, int(statm[0])

    def _count_mappings(self, until_s: float) -> None:
        while self.clock() < until_s:
            counting = self._counting or self._start_counting()
            if counting is None:
                return
            self._counting = counting
            try:
                piece = os.read(counting.descriptor, _PIECE_BYTES)
            except OSError:
                piece = b""
            counting.lines += piece.count(b"\n")
            one = self._known.setdefault(counting.pid, _Process())
            one.mappings = counting.lines if not piece else max(one.mappings, counting.lines)
            if not piece:
                self.close()

    def _start_counting(self) -> _MapsCount | None:
        """Of the process that has grown most since it was counted."""
        pid = max(self._known, key=self._grown, default=None)
        if pid is None or self._grown(pid) < _PAGES_GROWN:
            return None
        one = self._known[pid]
        one.pages_counted = one.pages
        try:
            descriptor = os.open(f"{self.root}/proc/{pid}/maps", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        return _MapsCount(pid, descriptor, one.pages)

    def _grown(self, pid: int) -> int:
        return abs(self._known[pid].pages - self._known[pid].pages_counted)

    def _largest(self, kind: str) -> Iterator[Holder]:
        counts = {
            pid: {"open-files": one.files or 0, "threads": one.threads, "mappings": one.mappings}[
                kind
            ]
            for pid, one in self._known.items()
        }
        for pid in sorted(counts, key=lambda pid: -counts[pid])[:MOST_HOLDERS]:
            if counts[pid] >= LEAST[kind]:
                yield Holder(kind, counts[pid], pid, *self._names(pid))

    def _names(self, pid: int) -> tuple[str, str | None]:
        base = f"{self.root}/proc/{pid}"
        comm = clean((read_once(f"{base}/comm") or b"?").rstrip(b"\n"))
        lines = (read_once(f"{base}/cgroup") or b"")[:_CGROUP_BYTES].splitlines()
        paths = [line.split(b":", 2)[2] for line in lines if line.count(b":") >= 2]
        # Of several hierarchies the deepest says most.
        deepest = max(paths, key=lambda path: path.count(b"/") if path != b"/" else 0, default=None)
        return comm, clean(deepest) if deepest is not None else None
