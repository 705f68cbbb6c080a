"""What the limits of each cgroup did: throttled by cpu.max, held back by memory.high and max,
killed for lack of memory.

Only files that cost nothing are read: memory.events, memory.failcnt and memory.oom_control are
plain counters. memory.stat and memory.numa_stat are never read, because they walk the dead too and
can starve a core. On v2 cpu.stat makes the kernel gather the cgroup's figures from every CPU
(rstat), so it is read only where cpu.max sets a quota: nothing else can be throttled.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from necroscope.model.names import LINE_LIMIT, clean
from necroscope.model.reading import Row
from necroscope.model.units import NS_PER_US
from necroscope.sources.cgroupfs.walk import Walk
from necroscope.sources.kept_file import read_once

# Of one hierarchy, of which at most two (v1's cpu and memory, or v1 and v2) are in use.
READ_LIMIT: Final = 1_000
TIME_LIMIT_NS: Final = 30_000_000
# nr_throttled, throttled_ns, memory_high_events, memory_max_events, oom_kills
Figures = tuple[int | None, int | None, int | None, int | None, int | None]
_ZEROS: Final[Figures] = (0, 0, 0, 0, 0)


def parse_flat(data: bytes | None) -> dict[bytes, int]:
    """`name value` lines; a file that is absent has none."""
    words = (data or b"").split()
    return {
        name: int(value)
        for name, value in zip(words[::2], words[1::2], strict=False)
        if value.isdigit()
    }


def figures_v1_cpu(directory: bytes) -> Figures:
    stat = parse_flat(read_once(directory + b"/cpu.stat"))
    return (stat.get(b"nr_throttled"), stat.get(b"throttled_time"), None, None, None)


def figures_v1_memory(directory: bytes) -> Figures:
    fail_count = read_once(directory + b"/memory.failcnt")
    oom = parse_flat(read_once(directory + b"/memory.oom_control"))
    return (
        None,
        None,
        None,
        int(fail_count) if fail_count and fail_count.strip().isdigit() else None,
        oom.get(b"oom_kill"),
    )


def figures_v2(directory: bytes) -> Figures:
    quota = read_once(directory + b"/cpu.max")
    has_quota = quota is not None and not quota.startswith(b"max")
    cpu = parse_flat(read_once(directory + b"/cpu.stat")) if has_quota else {}
    throttled_us = cpu.get(b"throttled_usec")
    throttled_ns = None if throttled_us is None else throttled_us * NS_PER_US
    memory = parse_flat(read_once(directory + b"/memory.events"))
    return (
        cpu.get(b"nr_throttled"),
        throttled_ns,
        memory.get(b"high"),
        memory.get(b"max"),
        memory.get(b"oom_kill"),
    )


def rises(now: Figures, before: Figures) -> Figures | None:
    """What was counted since; None if nothing was.

    A figure that fell is a cgroup re-created under its old name, as every restart of a service
    does: all of it is new.
    """
    changes = tuple(_rise(new, old) for new, old in zip(now, before, strict=True))
    return (changes[0], changes[1], changes[2], changes[3], changes[4]) if any(changes) else None


def _rise(new: int | None, old: int | None) -> int | None:
    if new is None or old is None:
        return None
    return new - old if new >= old else new


@dataclass(slots=True)
class CgroupLimits:
    """The limits of one hierarchy: reads its cgroups in turn, some each time where there are
    many.
    """

    controller: str
    figures_of: Callable[[bytes], Figures]
    _before: dict[bytes, Figures] = field(default_factory=dict)
    _next: int = 0
    _owed: int = 0
    _has_seen_all: bool = False

    def read(
        self, top: bytes, seen: Walk, time_ns: int, clock_ns: Callable[[], int]
    ) -> tuple[list[Row], int]:
        """Rows of the cgroups whose figures changed, and how many there was no time for twice in a
        row.

        Whose turn it was not has its rise in the next read: nothing is lost but its moment.
        """
        deadline_ns = clock_ns() + TIME_LIMIT_NS
        paths = seen.paths
        self._before = {path: self._before[path] for path in paths if path in self._before}
        rows: list[Row] = []
        done = 0
        for path in self._in_turn(paths):
            if done >= READ_LIMIT or (done % 16 == 15 and clock_ns() > deadline_ns):
                break
            change = self._change(path, self.figures_of(top if path == b"/" else top + path))
            if change is not None:
                rows.append(
                    (time_ns, self.controller, clean(path, LINE_LIMIT), None, None, None, *change)
                )
            done += 1
        self._next += done
        self._has_seen_all = not seen.is_cut and (
            self._has_seen_all or len(self._before) == len(paths)
        )
        late, self._owed = max(0, min(self._owed, len(paths)) - done), len(paths) - done
        return rows, late

    def _in_turn(self, paths: list[bytes]) -> Iterator[bytes]:
        start = self._next % len(paths) if paths else 0
        yield from paths[start:]
        yield from paths[:start]

    def _change(self, path: bytes, figures: Figures) -> Figures | None:
        """Against the figures before; a cgroup that came after all were seen started from 0, the
        others from an unknown past.
        """
        before = self._before.get(path, _ZEROS if self._has_seen_all else None)
        self._before[path] = figures
        return None if before is None else rises(figures, before)
