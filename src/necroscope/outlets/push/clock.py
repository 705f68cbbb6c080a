"""How this node's clock stands against the collector's, measured with every batch as NTP does
(RFC 5905, section 8): four moments of one exchange, and the half of its way as the error.

    node        sent ───────────────────────────── heard
    collector          arrived ── answered
"""

from dataclasses import dataclass
from typing import Final

from necroscope.model.units import NS_PER_S

# An older measurement is replaced by one that is less exact.
_KEPT_NS: Final = 600 * NS_PER_S
# A clock that is being set right may run this much faster or slower (adjtimex(2)).
_DRIFT: Final = 500e-6


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """`offset_ns` is the collector's clock minus ours."""

    at_ns: int
    offset_ns: int
    error_ns: int


class CollectorClock:
    def __init__(self) -> None:
        self.measured: ClockOffset | None = None

    def note(self, sent_ns: int, arrived_ns: int, answered_ns: int, heard_ns: int) -> None:
        """The most exact of the last minutes is kept; a step of either clock shows, and begins
        again.
        """
        way_ns = (heard_ns - sent_ns) - (answered_ns - arrived_ns)
        if way_ns < 0 or answered_ns < arrived_ns:
            return  # a clock was set in between
        offset_ns = ((arrived_ns - sent_ns) + (answered_ns - heard_ns)) // 2
        new = ClockOffset(heard_ns, offset_ns, -(-way_ns // 2))
        old = self.measured
        if old is not None:
            old_error_ns = _error_ns(old, heard_ns)
            is_step = abs(new.offset_ns - old.offset_ns) > new.error_ns + old_error_ns
            is_old = not 0 <= heard_ns - old.at_ns < _KEPT_NS
            if not is_step and not is_old and old_error_ns <= new.error_ns:
                return
        self.measured = new

    def header(self, now_ns: int) -> str | None:
        """`OFFSET ERROR` in nanoseconds, as of now."""
        if self.measured is None:
            return None
        return f"{self.measured.offset_ns} {_error_ns(self.measured, now_ns)}"


def _error_ns(measured: ClockOffset, now_ns: int) -> int:
    return measured.error_ns + round(abs(now_ns - measured.at_ns) * _DRIFT)
