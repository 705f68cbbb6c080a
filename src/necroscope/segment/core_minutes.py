"""Derives the table `core_minutes` from `cores` and `softirq_delay`, row by row and without Arrow
or numpy.

It runs in the sealing child, which streams a segment: for 96 cores and five minutes a tenth of a
second of CPU.
"""

from collections import defaultdict
from collections.abc import Iterable
from operator import add, truediv
from typing import Final

from necroscope.model.core_shares import MEAN_MODES, MINUTE_NS, MODE_PARTS, WORST_MODES, whole_share
from necroscope.model.reading import Rows

_Key = tuple[int, int]
CORE_COLUMNS: Final = (
    *("time", "cpu", "elapsed_ns"),
    *(name for parts in MODE_PARTS.values() for name in parts),
)
DELAY_COLUMNS: Final = ("time", "cpu", "worst_ns", "pending_ns")


# A row that speaks for more than an hour is a pause of the recorder, and not drawn as known.
_MOST_MINUTES: Final = 64


# Ticks are gathered and taken in this many at once: sums over columns are loops in C.
_AT_ONCE: Final = 20


class _Minute:
    """What is known of one core in one minute."""

    __slots__ = ("_amounts_ns", "_elapsed_ns", "_ticks", "_worst", "waiting")

    def __init__(self) -> None:
        self.waiting: list[tuple[int, ...]] = []
        self._ticks = 0
        self._elapsed_ns = 0
        self._amounts_ns = [0] * len(MEAN_MODES)
        self._worst = [0.0] * len(WORST_MODES)

    def take_in(self) -> None:
        """Move what waits into the sums and the worst."""
        _, _, elapsed_ns, user_ns, nice_ns, guest_ns, *kernel_ns, idle_ns, iowait_ns = zip(
            *self.waiting, strict=True
        )
        self._ticks += len(self.waiting)
        self._elapsed_ns += sum(elapsed_ns)
        self.waiting.clear()
        modes_ns = [list(map(sum, zip(user_ns, nice_ns, guest_ns, strict=True))), *kernel_ns]
        busy_ns = map(sum, zip(*modes_ns, strict=True))
        worst = (max(map(truediv, mode_ns, elapsed_ns)) for mode_ns in (busy_ns, *modes_ns))
        self._worst = list(map(max, self._worst, worst))
        amounts_ns = (*map(sum, modes_ns), sum(idle_ns) + sum(iowait_ns))
        self._amounts_ns = list(map(add, self._amounts_ns, amounts_ns))

    def columns(self) -> tuple[int | None, ...]:
        """From `ticks` to the last share."""
        if self.waiting:
            self.take_in()
        if not self._ticks:
            return (0, *(None,) * (len(MEAN_MODES) + len(WORST_MODES)))
        means = (amount_ns / self._elapsed_ns for amount_ns in self._amounts_ns)
        return (self._ticks, *map(whole_share, (*means, *self._worst)))


class CoreMinutes:
    """Takes rows without nulls in any order; a tick belongs to every minute that it touches."""

    def __init__(self) -> None:
        self._minutes: defaultdict[_Key, _Minute] = defaultdict(_Minute)
        self._delays_ns: dict[_Key, int] = {}

    def add_cores(self, rows: Iterable[tuple[int, ...]]) -> None:
        """Rows of CORE_COLUMNS."""
        for row in rows:
            last = (row[0] - 1) // MINUTE_NS
            first = (row[0] - row[2]) // MINUTE_NS
            for minute in range(max(first, last - _MOST_MINUTES), last + 1):
                waiting = self._minutes[minute, row[1]].waiting
                waiting.append(row)
                if len(waiting) >= _AT_ONCE:
                    self._minutes[minute, row[1]].take_in()

    def add_delays(self, rows: Iterable[tuple[int, ...]]) -> None:
        """Rows of DELAY_COLUMNS."""
        known_ns = self._delays_ns
        for time_ns, cpu, worst_ns, pending_ns in rows:
            key = (time_ns - 1) // MINUTE_NS, cpu
            delay_ns = pending_ns if pending_ns > worst_ns else worst_ns
            if delay_ns >= known_ns.get(key, 0):
                known_ns[key] = delay_ns

    def rows(self) -> Rows:
        """Of `core_minutes`, in order of time and core."""
        keys = sorted({*self._minutes, *self._delays_ns})
        return [
            (key[0] * MINUTE_NS, key[1], *self._minutes[key].columns(), self._delays_ns.get(key))
            for key in keys
        ]
