"""The recorder's own cost: when it is over budget the sampling rate goes down, and up again when
there is room. No I/O.
"""

from typing import Final

from necroscope.model.units import NS_PER_S

LEAST_HZ: Final = 11
_CHECK_NS: Final = 60 * NS_PER_S
_FIRST_CHECK_NS: Final = 5 * NS_PER_S
# Twice the rate costs at most twice as much: below this part of the budget there is room for it.
_CALM_RATIO: Final = 0.4
_CALM_CHECKS: Final = 3


class CpuBudget:
    """Fed with the CPU time used so far; answers the rate to sample at."""

    def __init__(self, wanted_hz: int, budget_ratio: float) -> None:
        self.hz = wanted_hz
        self.share: float | None = None
        self._wanted_hz = wanted_hz
        self._budget_ratio = budget_ratio
        self._last: tuple[int, int] | None = None
        self._asked_ns = 0
        self._is_first_minute = True
        self._calm = 0

    def is_asking(self, now_ns: int) -> bool:
        """Whether `update` wants to know: once a minute, and every 5 s in the first one, for which
        there is no other share.
        """
        if self._last is None or self.share is None or now_ns - self._last[1] >= _CHECK_NS:
            return True
        return self._is_first_minute and now_ns - self._asked_ns >= _FIRST_CHECK_NS

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
