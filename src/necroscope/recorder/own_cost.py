"""What the recorder itself costs, and the sampling rate that keeps it within its budget."""

import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from necroscope.errors import NecroscopeError
from necroscope.model.reading import Moment, Reading, Source, Trouble
from necroscope.model.units import NS_PER_S
from necroscope.recorder.budget import CpuBudget


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
        if self._budget.is_asking(now.monotonic_ns):
            hz = self._budget.update(own_cpu_ns(self._child_pids()), now.monotonic_ns)
            if hz is not None and self._set_hz is not None:
                self._change_rate(hz, self._set_hz)
        found = Reading(parts=self._parts)
        if self._set_hz is not None and self.hz != self._written_hz:
            self._written_hz = self.hz
            found.rows["sampling"] = [(now.time_ns, NS_PER_S // self.hz)]
        return found

    def start_segment(self) -> None:
        self._written_hz = None

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
