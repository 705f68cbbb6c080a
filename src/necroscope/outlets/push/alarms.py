"""When rows are urgent: the recorder pins a window when something alarming happens, and writes what
it learns of it in the seconds after.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from necroscope.segment.recording import PINS_FILE

# A member's last words are waited for, blocks are flushed every few seconds, waits are booked late.
_AFTER_S: Final = 25.0
_EVERY_S: Final = 5.0


class Alarms:
    """`clock` is monotonic. What was pinned before the start is not an alarm."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._changed_ns: int | None = None
        self._until_s = self._next_s = clock()

    def ring(self) -> None:
        """Something else, from outside, makes rows urgent."""
        self._until_s = self._clock() + _AFTER_S

    def is_due(self, recording: Path) -> bool:
        """Whether to look now: every few seconds, for a while after an alarm."""
        changed_ns, before_ns = _changed_ns(recording), self._changed_ns
        self._changed_ns = changed_ns
        if before_ns is not None and changed_ns != before_ns:
            self.ring()
        now_s = self._clock()
        if now_s >= self._until_s or now_s < self._next_s:
            return False
        self._next_s = now_s + _EVERY_S
        return True


def _changed_ns(recording: Path) -> int:
    try:
        return (recording / PINS_FILE).stat().st_mtime_ns
    except OSError:
        return 0
