"""How each core spent its time: the `cpuN` lines of /proc/stat (fs/proc/stat.c), in USER_HZ ticks,
as nanoseconds.

The kernel books a guest's time twice, in `user` and `guest` (and in `nice` and `guest_nice`). Here
`user_ns` and `nice_ns` are without their guest part and `guest_ns` is both guests, so that the nine
modes add up to the time that passed.
"""

import os
from collections.abc import Sequence
from operator import sub
from pathlib import Path
from typing import Final

from necroscope.model.reading import Gap, Moment, Reading, Rows, Source
from necroscope.model.units import NS_PER_S
from necroscope.sources.kept_file import KeptFile
from necroscope.sources.kept_numbers import KeptNumbers

_MODES: Final = 10
# The line behind the cores'.
_END: Final = b"intr"
# idle, iowait and steal may go backwards in the kernel (get_iowait_time_us, live migration), and
# guest is read apart from user: such a fall counts as 0. Counters restarted when the other modes
# together fell.
_MAY_FALL: Final = (3, 4, 7)
Ticks = tuple[int, ...]


def parse(data: bytes) -> dict[int, Ticks]:
    """Ticks of each online core in the order of the table's modes, guests counted once."""
    # The interrupt line holds thousands of numbers on a large machine: it is cut off before
    # anything is split.
    end = data.find(_END)
    lines = data[: end if end >= 0 else data.rfind(b"\n") + 1]
    fields = lines.replace(b"cpu", b"").split()
    width = _width(data)
    if width < _MODES or len(fields) <= width or (len(fields) - width) % (width + 1):
        raise ValueError("cpu lines are missing or cut")
    numbers = list(map(int, fields))
    return {
        numbers[at]: _without_guests(numbers, at + 1)
        for at in range(width, len(numbers), width + 1)
    }


def _width(data: bytes) -> int:
    """How many modes this kernel has."""
    return len(data.partition(b"\n")[0].split()) - 1


def _places(data: bytes, cores: int) -> list[int]:
    """The words that hold the modes, core by core, behind the line of all cores together."""
    line = _width(data) + 1
    return [core * line + 1 + mode for core in range(1, cores + 1) for mode in range(_MODES)]


def _without_guests(numbers: Sequence[int], at: int) -> Ticks:
    user, nice, system, idle, iowait, irq, softirq, steal, guest, guest_nice = numbers[
        at : at + _MODES
    ]
    return (
        user - guest,
        nice - guest_nice,
        system,
        idle,
        iowait,
        irq,
        softirq,
        steal,
        guest + guest_nice,
    )


class Cores(Source):
    """One row a core and tick; `online` are the CPUs of the last read, so that the recorder can
    follow hot-plug.
    """

    name = "cores"
    tables: tuple[str, ...] = ("cores",)

    def __init__(self, root: Path, ticks_per_s: int = 0) -> None:
        self._file = KeptFile(root / "proc/stat")
        self._to_ns = (NS_PER_S // (ticks_per_s or os.sysconf("SC_CLK_TCK"))).__mul__
        self._numbers = KeptNumbers(self._file, end=_END)
        self._cpus: tuple[int, ...] = ()
        # None: they are in `_numbers`.
        self._before: dict[int, Ticks] | None = {}
        self._read_at: Moment | None = None
        self._offline_since_ns: dict[int, int] = {}
        self.online: frozenset[int] = frozenset()

    def read(self, now: Moment) -> Reading:
        reading = Reading()
        last = self._read_at or now
        rises: dict[int, Ticks]
        if self._numbers.take():
            numbers, self._before = self._numbers.rises, None
            rises = {
                cpu: _without_guests(numbers, _MODES * place)
                for place, cpu in enumerate(self._cpus)
            }
        else:
            before = self._last_ticks()
            cores = self._file.parse(self._parse, record=True)
            rises = {
                cpu: tuple(map(sub, ticks, before[cpu]))
                for cpu, ticks in cores.items()
                if cpu in before
            }
            if cores.keys() != before.keys():
                reading.gaps += self._changes(cores, before, now, last)
                self.online = frozenset(cores)
            self._before = cores
        reading.rows["cores"] = self._rows(rises, now, last, reading.gaps)
        self._read_at = now
        return reading

    def close(self) -> None:
        self._file.close()

    def _last_ticks(self) -> dict[int, Ticks]:
        if self._before is not None:
            return self._before
        numbers = self._numbers.values
        return {
            cpu: _without_guests(numbers, _MODES * place) for place, cpu in enumerate(self._cpus)
        }

    def _parse(self, data: bytes) -> dict[int, Ticks]:
        cores = parse(data)
        self._numbers.learn(data, _places(data, len(cores)))
        self._cpus = tuple(cores)
        return cores

    def _rows(self, rises_of: dict[int, Ticks], now: Moment, last: Moment, gaps: list[Gap]) -> Rows:
        rows: Rows = []
        elapsed_ns = now.monotonic_ns - last.monotonic_ns
        for cpu, rises in rises_of.items():
            if min(rises) < 0:
                if sum(rises) < sum(rises[at] for at in _MAY_FALL):
                    gaps.append(
                        Gap(
                            "cores",
                            last.time_ns,
                            now.time_ns,
                            f"the counters of cpu {cpu} started again",
                            cpu,
                        )
                    )
                    continue
                rises = tuple(max(0, rise) for rise in rises)  # noqa: PLW2901
            rows.append((now.time_ns, cpu, elapsed_ns, *map(self._to_ns, rises)))
        return rows

    def _changes(
        self, cores: dict[int, Ticks], before: dict[int, Ticks], now: Moment, last: Moment
    ) -> list[Gap]:
        """A gap when a CPU leaves, and when it is back one over the whole time it was away."""
        gaps = []
        for cpu in before.keys() - cores.keys():
            self._offline_since_ns[cpu] = last.time_ns
            gaps.append(Gap("cores", last.time_ns, now.time_ns, f"cpu {cpu} went offline", cpu))
        for cpu in cores.keys() & self._offline_since_ns.keys():
            gaps.append(
                Gap(
                    "cores",
                    self._offline_since_ns.pop(cpu),
                    now.time_ns,
                    f"cpu {cpu} was offline",
                    cpu,
                )
            )
        return gaps
