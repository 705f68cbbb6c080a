"""Pauses between tries that fail: doubled each time, at random shorter, never shorter than the
other side asks. No I/O.
"""

from collections.abc import Callable
from typing import Final

from necroscope.model.units import NS_PER_S

_FIRST_PAUSE_S: Final = 1.0
_LONGEST_PAUSE_S: Final = 300.0
_LONGEST_WAIT_NS: Final = 3600 * NS_PER_S


class Backoff:
    """`jitter` is a random number from 0 to 1: nodes that lost the same receiver must not come back
    at the same moment.
    """

    def __init__(self, jitter: Callable[[], float]) -> None:
        self._jitter = jitter
        self._failures = 0
        self.not_before_ns = 0

    def is_due(self, now_ns: int) -> bool:
        """A pause longer than any we make means that the clock was stepped back."""
        return not now_ns < self.not_before_ns <= now_ns + _LONGEST_WAIT_NS

    def failed(self, now_ns: int, wait_s: float | None) -> float:
        """The pause until the next try, in seconds."""
        pause_s = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2.0 ** min(self._failures, 20))
        pause_s = max(pause_s * (0.5 + self._jitter() / 2), wait_s or 0.0)
        self._failures += 1
        self.not_before_ns = now_ns + round(pause_s * NS_PER_S)
        return pause_s

    def succeeded(self) -> None:
        self._failures = self.not_before_ns = 0
