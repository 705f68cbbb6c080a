"""Questions to what the meter read: the lab's own measurement, independent of the recorder that is
to be judged.
"""

import os
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from necroscope.lab.scenario import MODES
from necroscope.model.units import NS_PER_MS, NS_PER_S

Window = tuple[int, int]
Reading = tuple[int, str]

_JIFFY_NS: Final = NS_PER_S // os.sysconf("SC_CLK_TCK")
_SOFTNET: Final = ("processed", "dropped", "squeezed")


@dataclass(frozen=True, slots=True)
class Delays:
    """Of packets sent across the lab's veth pair in a window; a packet that never came is lost."""

    sent: int
    lost: int
    p99_ms: float
    max_ms: float


@dataclass(frozen=True, slots=True)
class Measurements:
    """All readings of all watched files, and the packets; a question without a window asks about
    the incident.
    """

    readings: dict[str, list[Reading]]
    baseline: Window
    incident: Window
    # Time of sending and delay of each packet in ns; None if it never came.
    packets: list[tuple[int, int | None]] = field(default_factory=list)

    def texts(self, path: str, window: Window | None = None) -> list[Reading]:
        """What the file held, at each moment it was read."""
        from_ns, to_ns = window or self.incident
        return [
            reading for reading in self.readings.get(path, []) if from_ns <= reading[0] <= to_ns
        ]

    def shares(self, core: int, window: Window | None = None) -> dict[str, float]:
        """Share of elapsed time by mode (`MODES`), from /proc/stat."""
        ticks = self._core_ticks(core, window)
        if len(ticks) < 2:
            return dict.fromkeys(MODES, 0.0)
        return _shares(ticks[0], ticks[-1])

    def peak_share(
        self, core: int, modes: Sequence[str], seconds: float, window: Window | None = None
    ) -> float:
        """The highest share that these modes together had over any stretch of this length: for what
        comes and goes.
        """
        ticks = self._core_ticks(core, window)
        times_ns = [time_ns for time_ns, _ in ticks]
        highest = 0.0
        for start, first in enumerate(ticks):
            end = bisect_left(times_ns, first[0] + round(seconds * NS_PER_S), start + 1)
            if end < len(ticks):
                shares = _shares(first, ticks[end])
                highest = max(highest, sum(shares[mode] for mode in modes))
        return highest

    def growth(self, path: str, key: str, window: Window | None = None) -> int:
        """By how much a number grew in a file of `key value` lines: /proc/vmstat, cpu.stat; 0 if it
        is not there.
        """
        values = [
            value
            for _, text in self.texts(path, window)
            if (value := _value_of(text, key)) is not None
        ]
        return values[-1] - values[0] if values else 0

    def highest(self, path: str, key: str = "", window: Window | None = None) -> int:
        """The highest value of a key, or of a file that holds one number."""
        values = [
            _value_of(text, key) if key else _number(text) for _, text in self.texts(path, window)
        ]
        return max((value for value in values if value is not None), default=0)

    def tracked_cgroups(self, controller: str = "memory", window: Window | None = None) -> int:
        """The most cgroups that the kernel held at a time, dead ones included (/proc/cgroups)."""
        rows = [
            line.split()
            for _, text in self.texts("/proc/cgroups", window)
            for line in text.splitlines()
        ]
        return max((int(row[2]) for row in rows if row[0] == controller), default=0)

    def softirqs(self, core: int, vector: str, window: Window | None = None) -> int:
        """How often a softirq (`NET_RX`, `TIMER` ...) ran on the core."""
        return self._row_growth("/proc/softirqs", vector, core, window)

    def interrupts(self, core: int, name: str, window: Window | None = None) -> int:
        """How often an interrupt of the core itself (`LOC`, `TLB`, `CAL`, `RES`) came on it."""
        return self._row_growth("/proc/interrupts", name, core, window)

    def softnet(self, core: int, window: Window | None = None) -> dict[str, int]:
        """Packets processed, dropped and squeezed on the core."""
        texts = self.texts("/proc/net/softnet_stat", window)
        rows = [row for _, text in texts if (row := _softnet_row(text, core)) is not None]
        return {name: rows[-1][i] - rows[0][i] if rows else 0 for i, name in enumerate(_SOFTNET)}

    def schedstat(self, pid: int, window: Window | None = None) -> tuple[float, float]:
        """Seconds run and seconds waited for a core by a task that the stage watches
        (`stage.watch_task`).
        """
        rows = [
            [int(word) for word in text.split()]
            for _, text in self.texts(f"/proc/{pid}/schedstat", window)
        ]
        rows = [row for row in rows if len(row) >= 2]
        return (
            ((rows[-1][0] - rows[0][0]) / NS_PER_S, (rows[-1][1] - rows[0][1]) / NS_PER_S)
            if rows
            else (0.0, 0.0)
        )

    def longest_softirq_freeze_s(self, core: int, window: Window | None = None) -> float:
        """The longest stretch in which no softirq at all ran on the core although the timer
        interrupt came.
        """
        sums = zip(self._row_sums(core, window), self._timer_ticks(core, window), strict=False)
        longest_ns, since_ns = 0, None
        for ((time_ns, before), ticks_before), ((next_ns, after), ticks_after) in pairwise(sums):
            if before == after and ticks_after > ticks_before:
                since_ns = time_ns if since_ns is None else since_ns
                longest_ns = max(longest_ns, next_ns - since_ns)
            else:
                since_ns = None
        return longest_ns / NS_PER_S

    def delays(self, window: Window | None = None) -> Delays:
        """Of the packets sent in the window."""
        from_ns, to_ns = window or self.incident
        sent = [delay for time_ns, delay in self.packets if from_ns <= time_ns <= to_ns]
        came = sorted(delay / NS_PER_MS for delay in sent if delay is not None)
        p99, worst = (
            came[min(len(came) - 1, int(len(came) * part))] if came else 0.0 for part in (0.99, 1.0)
        )
        return Delays(len(sent), len(sent) - len(came), round(p99, 3), round(worst, 3))

    def _core_ticks(self, core: int, window: Window | None) -> list[tuple[int, list[int]]]:
        name = f"cpu{core} "
        return [
            (time_ns, [int(word) for word in line.split()[1:9]])
            for time_ns, text in self.texts("/proc/stat", window)
            for line in text.splitlines()
            if line.startswith(name)
        ]

    def _row_growth(self, path: str, row: str, core: int, window: Window | None) -> int:
        values = [
            value
            for _, text in self.texts(path, window)
            if (value := _cell(text, row, core)) is not None
        ]
        return values[-1] - values[0] if values else 0

    def _row_sums(self, core: int, window: Window | None) -> Iterator[tuple[int, int]]:
        for time_ns, text in self.texts("/proc/softirqs", window):
            column = _column(text, core)
            yield time_ns, sum(int(line.split()[1 + column]) for line in text.splitlines()[1:])

    def _timer_ticks(self, core: int, window: Window | None) -> Iterator[int]:
        for _, text in self.texts("/proc/interrupts", window):
            yield _cell(text, "LOC", core) or 0


def _shares(first: tuple[int, list[int]], last: tuple[int, list[int]]) -> dict[str, float]:
    elapsed_ns = max(1, last[0] - first[0])
    return {
        mode: (last[1][i] - first[1][i]) * _JIFFY_NS / elapsed_ns for i, mode in enumerate(MODES)
    }


def _value_of(text: str, key: str) -> int | None:
    for line in text.splitlines():
        words = line.replace(":", " ").split()
        if len(words) >= 2 and words[0] == key:
            return _number(words[1])
    return None


def _number(text: str) -> int | None:
    try:
        return int(text.split(maxsplit=1)[0])
    except (ValueError, IndexError):
        return None


def _column(text: str, core: int) -> int:
    """Both tables have a heading of the cores that are on: CPU0 CPU2 ..."""
    return text.split("\n", 1)[0].split().index(f"CPU{core}")


def _cell(text: str, row: str, core: int) -> int | None:
    for line in text.splitlines():
        words = line.split()
        if words and words[0] == f"{row}:":
            return int(words[1 + _column(text, core)])
    return None


def _softnet_row(text: str, core: int) -> list[int] | None:
    """Hexadecimal; since 5.10 the thirteenth column is the core, before that row i is the i-th core
    that is on.
    """
    rows = [[int(word, 16) for word in line.split()] for line in text.splitlines()]
    for i, row in enumerate(rows):
        if (row[12] if len(row) > 12 else i) == core:
            return row
    return None
