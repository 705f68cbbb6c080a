"""The greatest value of the last minute and whose it was: the same answer for every scraper,
however often it asks.
"""

from collections import deque
from typing import Final

import numpy as np
from numpy.typing import NDArray

from necroscope.model.units import NS_PER_S

_MINUTE_NS: Final = 60 * NS_PER_S


class Worst:
    """Fed in order of time; keeps only what can still become the answer, which is a minute of ticks
    at most.
    """

    def __init__(self) -> None:
        self._noted: deque[tuple[int, float, int]] = deque()

    def take(
        self, times_ns: NDArray[np.int64], values: NDArray[np.float64], cpus: NDArray[np.int64]
    ) -> None:
        """Rows of several cores at several ticks: of each tick the greatest."""
        if not len(times_ns):
            return
        starts = np.flatnonzero(np.diff(times_ns, prepend=times_ns[0] - 1))
        for start, end in zip(starts, [*starts[1:], len(times_ns)], strict=True):
            place = start + int(np.argmax(values[start:end]))
            self._note(int(times_ns[place]), float(values[place]), int(cpus[place]))

    def before(self, now_ns: int) -> tuple[float, int] | None:
        """Value and core of the minute before; None if nothing was recorded in it."""
        while self._noted and self._noted[0][0] < now_ns - _MINUTE_NS:
            self._noted.popleft()
        return self._noted[0][1:] if self._noted else None

    def _note(self, time_ns: int, value: float, cpu: int) -> None:
        """What is greater and newer hides what came before it, and what is too old goes though
        nobody asks.
        """
        while self._noted and (
            self._noted[-1][1] <= value or self._noted[-1][0] < time_ns - _MINUTE_NS
        ):
            self._noted.pop()
        while self._noted and self._noted[0][0] < time_ns - _MINUTE_NS:
            self._noted.popleft()
        self._noted.append((time_ns, value, cpu))
