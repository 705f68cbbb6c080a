"""Rows of copies of /proc files of one machine: differences between one copy and the next, and how
many cgroups are dead.
"""

from collections.abc import Iterable
from operator import sub
from typing import Final

from necroscope.interchange.mpstat import MOST_ROWS
from necroscope.interchange.proc_files import (
    CGROUPS,
    DIRECTORIES,
    INTERRUPTS,
    STAT,
    STATS,
    Snapshot,
)
from necroscope.model.names import clean
from necroscope.model.reading import Row, Rows
from necroscope.model.units import NS_PER_S
from necroscope.sources.cgroupfs.counts import count_v1, count_v2, parse_cgroup_stat
from necroscope.sources.procfs import interrupts, stat
from necroscope.sources.sysfs.netdev_irqs import NetworkDevices

# USER_HZ of every architecture that is imported from here.
_TICK_NS: Final = NS_PER_S // 100
_NO_DEVICES: Final = NetworkDevices(frozenset(), {}, {})
# The kernel's other hierarchies that say how many cgroups have a directory.
_LEAST_OTHERS: Final = 3


class ProcSeries:
    """`add` in order of time, then `finish`; `rows` and `notes` are known then."""

    def __init__(self) -> None:
        self.rows: dict[str, Rows] = {}
        self.notes: list[str] = []
        self.left_out = 0
        self._ticks: dict[int, stat.Ticks] = {}
        self._ticks_ns = 0
        self._counts: dict[str, interrupts.Line] = {}
        self._cpus: tuple[int, ...] = ()
        self._counted_ns: int | None = None
        self._held: list[tuple[int, dict[str, tuple[int, int]]]] = []
        self._seen: dict[str, int] = {}

    def add(self, snapshot: Snapshot, time_ns: int) -> None:
        """ValueError where the copy is damaged."""
        if snapshot.kind == STAT:
            self._add_stat(snapshot.lines, time_ns)
        elif snapshot.kind == INTERRUPTS:
            self._add_interrupts(snapshot.lines, time_ns)
        elif snapshot.kind == CGROUPS:
            self._held.append((time_ns, _held(snapshot.lines)))
        elif snapshot.kind == STATS:
            counts = count_v2(b"/", parse_cgroup_stat(b"\n".join(snapshot.lines)))
            self._extend("cgroups", [count.row(time_ns) for count in counts])
        elif snapshot.kind == DIRECTORIES:
            self.count_directories(line.partition(b"/sys/fs/cgroup")[2] for line in snapshot.lines)

    def count_directories(self, paths: Iterable[bytes]) -> None:
        """Of a list of directories below /sys/fs/cgroup: how many of each hierarchy can be seen."""
        for path in paths:
            controller = clean(path.strip(b"/").partition(b"/")[0])
            for name in controller.split(","):
                self._seen[name] = self._seen.get(name, 0) + 1

    def finish(self) -> None:
        """Rows of cgroups, when all is known that tells how many of them can be seen."""
        for time_ns, held in self._held:
            seen = self._seen.get("memory") or _seen_elsewhere(held)
            if "memory" in held and "memory" not in self._seen and seen is not None:
                self.notes.append(
                    f"how many memory cgroups are alive is taken from the other hierarchies: {seen}"
                )
            rows = [
                count_v1(name, count, seen if name == "memory" else self._seen.get(name)).row(
                    time_ns
                )
                for name, (_, count) in held.items()
            ]
            self._extend("cgroups", rows)

    def _add_stat(self, lines: list[bytes], time_ns: int) -> None:
        now = stat.parse(b"\n".join((*lines, b"")))
        elapsed_ns = time_ns - self._ticks_ns if self._ticks else 0
        rows: Rows = []
        for cpu, ticks in now.items():
            rises = [max(rise, 0) for rise in map(sub, ticks, self._ticks.get(cpu, ticks))]
            if elapsed_ns > 0 and any(rises) and 0 <= cpu < 1 << 15:
                rows.append((time_ns, cpu, elapsed_ns, *(rise * _TICK_NS for rise in rises)))
        self._ticks, self._ticks_ns = now, time_ns
        self._extend("cores", rows)

    def _add_interrupts(self, lines: list[bytes], time_ns: int) -> None:
        cpus = interrupts.parse_header(lines[0])
        found = [interrupts.parse_line(line, len(cpus)) for line in lines[1:]]
        now = {line.label: line for line in found if line is not None}
        elapsed_ns = time_ns - self._counted_ns if self._counted_ns is not None else 0
        rows: list[Row] = []
        for label, line in now.items():
            before = self._counts.get(label)
            is_new = before is None or before.action != line.action or self._cpus != cpus
            rises = (
                [0] * len(cpus)
                if before is None or is_new or elapsed_ns <= 0
                else [max(rise, 0) for rise in map(sub, line.counts, before.counts)]
            )
            rows += _interrupt_rows(line, cpus, rises, (time_ns, max(elapsed_ns, 0)))
        self._counts, self._cpus, self._counted_ns = now, cpus, time_ns
        self._extend("interrupts", rows)

    def _extend(self, table: str, rows: Rows) -> None:
        own = self.rows.setdefault(table, [])
        room = max(0, MOST_ROWS - len(own))
        self.left_out += max(0, len(rows) - room)
        own += rows[:room]


def _interrupt_rows(
    line: interrupts.Line, cpus: tuple[int, ...], rises: list[int], moment: tuple[int, int]
) -> list[Row]:
    """Where interrupts came since the copy before, and where those of a network device ever came.
    One that came to a single core since boot goes there.
    """
    time_ns, elapsed_ns = moment
    device, queue = (
        interrupts.device_and_queue(line.label, line.action, _NO_DEVICES)
        if line.label.isdigit()
        else (None, None)
    )
    takers = [cpu for cpu, count in zip(cpus, line.counts, strict=True) if count]
    affinity = str(takers[0]) if device is not None and len(takers) == 1 else None
    names = (line.label, line.action, device, queue, affinity)
    return [
        (time_ns, cpu, *names, elapsed_ns, rise)
        for cpu, rise in zip(cpus, rises, strict=True)
        if rise or (device is not None and cpu in takers)
    ]


def _held(lines: list[bytes]) -> dict[str, tuple[int, int]]:
    """Hierarchy and count of each controller that has a hierarchy of its own."""
    found = {}
    for line in lines:
        words = line.split()
        if not line.startswith(b"#") and len(words) == 4 and int(words[1]):
            found[clean(words[0])] = int(words[1]), int(words[2])
    return found


def _seen_elsewhere(held: dict[str, tuple[int, int]]) -> int | None:
    """A dead cgroup is held in its own hierarchy alone, and only memory's are held for long: the
    others say how many there are. None where there are too few, as on cgroup v2.
    """
    own = held.get("memory")
    others = {hierarchy: count for hierarchy, count in held.values() if own and hierarchy != own[0]}
    return max(others.values()) if len(others) >= _LEAST_OTHERS else None
