"""What the recorder itself costs, and the sampling rate that keeps it within its budget."""

import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from necroscope.errors import NecroscopeError
from necroscope.model.reading import Moment, Reading, Source, Trouble
from necroscope.model.units import NS_PER_S

LEAST_HZ: Final = 11
_CHECK_NS: Final = 60 * NS_PER_S
_FIRST_CHECK_NS: Final = 5 * NS_PER_S
# Twice the rate costs at most twice as much: below this part of the budget there is room for it.
_CALM_RATIO: Final = 0.4
_CALM_CHECKS: Final = 3


class CpuBudget:
    """Fed with the CPU time used so far; answers the rate to sample at, lower when that is over
    budget. No I/O.
    """

    def __init__(self, wanted_hz: int, budget_ratio: float) -> None:
        self.hz = wanted_hz
        self.share: float | None = None
        self._wanted_hz = wanted_hz
        self._budget_ratio = budget_ratio
        self._last: tuple[int, int] | None = None
        self._asked_ns = 0
        self._is_first_minute = True
        self._calm = 0

    @property
    def due_ns(self) -> int:
        """When `update` wants to know: each minute, and every 5 s in the first one, for which
        there is no other share.
        """
        if self._last is None or self.share is None:
            return 0
        due_ns = self._last[1] + _CHECK_NS
        return min(due_ns, self._asked_ns + _FIRST_CHECK_NS) if self._is_first_minute else due_ns

    def update(self, cpu_ns: int, now_ns: int) -> int | None:
        """A new rate, or None to stay. Costs are averaged over a minute, so that one seal does not
        count as too much.
        """
        self._asked_ns = now_ns
        if self._last is None:
            self._last = (cpu_ns, now_ns)
            return None
        elapsed_ns = now_ns - self._last[1]
        share = (cpu_ns - self._last[0]) / max(1, elapsed_ns)
        if self._is_first_minute or elapsed_ns >= _CHECK_NS:
            self.share = share
        if elapsed_ns < _CHECK_NS:
            return None
        self._is_first_minute = False
        self._last = (cpu_ns, now_ns)
        if share > self._budget_ratio and self.hz > LEAST_HZ:
            return self._set(max(LEAST_HZ, self.hz // 2))
        self._calm = self._calm + 1 if share < _CALM_RATIO * self._budget_ratio else 0
        if self._calm >= _CALM_CHECKS and self.hz < self._wanted_hz:
            # One more than twice: half of an odd rate was rounded down.
            return self._set(min(self._wanted_hz, self.hz * 2 + 1))
        return None

    def _set(self, hz: int) -> int:
        self._calm = 0
        self.hz = hz
        return hz


class OwnCost(Source):
    """Its rows say what a sample stands for; a rate that was lowered is also a gap of `samples`.
    `hz` is the rate of now, `share` that of a core that the recorder takes.
    """

    name = "own cost"
    tables: tuple[str, ...] = ("sampling",)

    def __init__(
        self,
        hz: int,
        budget_ratio: float,
        set_hz: Callable[[int], None] | None = None,
        child_pids: Callable[[], Iterable[int]] = tuple,
    ) -> None:
        self.hz = hz
        self._wanted_hz = hz
        self._budget = CpuBudget(hz, budget_ratio)
        self._set_hz = set_hz
        self._child_pids = child_pids
        self._parts: tuple[Trouble, ...] = ()
        self._written_hz: int | None = None

    @property
    def share(self) -> float | None:
        return self._budget.share

    def read(self, now: Moment) -> Reading:
        if now.monotonic_ns >= self._budget.due_ns:
            hz = self._budget.update(own_cpu_ns(self._child_pids()), now.monotonic_ns)
            if hz is not None and self._set_hz is not None:
                self._change_rate(hz, self._set_hz)
        found = Reading(parts=self._parts)
        if self._set_hz is not None and self.hz != self._written_hz:
            self._written_hz = self.hz
            found.rows["sampling"] = [(now.time_ns, NS_PER_S // self.hz)]
        self.idle_until_ns = self._budget.due_ns
        return found

    def start_segment(self) -> None:
        self._written_hz = None
        self.idle_until_ns = 0

    def _change_rate(self, hz: int, set_hz: Callable[[int], None]) -> None:
        cause = (
            f"the recorder used {self._budget.share:.1%} of a core: sampling at {hz} Hz instead of"
            f" {self._wanted_hz}"
        )
        try:
            set_hz(hz)
        except OSError as error:  # the kernel may have lowered the highest rate it allows
            cause = f"sampling cannot be set to {hz} Hz: {error.strerror}"
        self.hz = hz
        lowered = Trouble("budget", ("samples",), NecroscopeError(cause))
        self._parts = (lowered,) if hz < self._wanted_hz else ()


def own_cpu_ns(child_pids: Iterable[int]) -> int:
    """CPU time used so far by this process, its ended children and these that have not ended."""
    children = os.times()
    ended_ns = round((children.children_user + children.children_system) * 1e9)
    return time.process_time_ns() + ended_ns + sum(_process_cpu_ns(pid) for pid in child_pids)


def _process_cpu_ns(pid: int) -> int:
    """Field 1 of /proc/PID/schedstat (the main thread's run time; the lookup process has no
    other).
    """
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return 0
