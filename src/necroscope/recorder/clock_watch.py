"""Follows the clocks: a step is an event, a sleep of the machine is a gap, and an anchor now and
then shows all of them.
"""

from typing import Final, Protocol

from necroscope.model.clocks import STEP_NS, ClockReading, TimeLine
from necroscope.model.event import Event
from necroscope.model.reading import Gap, Moment, Reading, Source
from necroscope.model.units import NS_PER_S, format_duration

_ANCHOR_NS: Final = 60 * NS_PER_S
# A clock that was set back this far, for this long, was wrong before: all that is recorded on would
# be stamped ahead of the clock, until the next start.
_LEAD_NS: Final = 60 * NS_PER_S
_LASTING_NS: Final = 300 * NS_PER_S


class Clock(Protocol):
    def read(self, *, with_log_clock: bool = True) -> ClockReading: ...


class ClockWatch(Source):
    """A step of the clock begins a new segment. `is_epoch_over` when the timeline has long been
    ahead of the clock: the service manager starts it again, on the clock as it is now.
    """

    name = "clocks"
    tables: tuple[str, ...] = ("anchors",)
    is_buffered = True

    def __init__(self, clock: Clock, time_line: TimeLine) -> None:
        self._clock = clock
        self._time_line = time_line
        self._asleep_ns: int | None = None
        self._anchor_due_ns = 0
        self._has_stepped = False
        self._ahead_since_ns: int | None = None
        self.is_epoch_over = False

    @property
    def wants_new_segment(self) -> bool:
        return self._has_stepped

    def start_segment(self) -> None:
        self._has_stepped = False
        self._anchor_due_ns = 0

    def read(self, now: Moment) -> Reading:
        is_anchor_due = now.monotonic_ns >= self._anchor_due_ns
        # The log's clock drifts over weeks, and costs a perf event to read.
        clocks, found = self._clock.read(with_log_clock=is_anchor_due), Reading()
        slept_ns = self._slept_ns(clocks)
        if slept_ns > NS_PER_S and not is_anchor_due:
            # The log's clock may have run on meanwhile.
            is_anchor_due, clocks = True, self._clock.read()
        before_ns = self._time_line.from_monotonic(clocks.monotonic_ns)
        step_ns = self._time_line.observe(clocks)
        now_ns = self._time_line.from_monotonic(clocks.monotonic_ns)
        if step_ns:
            direction = "forward" if step_ns > 0 else "back"
            detail = f"the clock was stepped {direction} by {format_duration(abs(step_ns))}"
            event = Event(time_ns=before_ns, kind="clock_step", message=detail)
            found.rows["events"] = [event.row()]
            if (
                now_ns - before_ns >= STEP_NS
            ):  # back and forth ends where it began, but for the jitter of the readings
                found.gaps.append(Gap("*", before_ns, now_ns, detail))
        if slept_ns > NS_PER_S:
            found.gaps.append(Gap("*", now_ns - slept_ns, now_ns, "the machine slept"))
        self._has_stepped |= bool(step_ns)
        found.gaps += self._follow_lead(clocks, now_ns)
        if step_ns or is_anchor_due:
            self._anchor_due_ns = clocks.monotonic_ns + _ANCHOR_NS
            found.rows["anchors"] = [self._time_line.anchor_row(clocks)]
        return found

    def _slept_ns(self, clocks: ClockReading) -> int:
        """Since the last reading."""
        before_ns, self._asleep_ns = self._asleep_ns, clocks.boottime_ns - clocks.monotonic_ns
        return 0 if before_ns is None else self._asleep_ns - before_ns

    def _follow_lead(self, clocks: ClockReading, now_ns: int) -> list[Gap]:
        lead_ns = now_ns - clocks.realtime_ns
        if lead_ns < _LEAD_NS:
            self._ahead_since_ns = None
        elif self._ahead_since_ns is None:
            self._ahead_since_ns = clocks.monotonic_ns
        elif clocks.monotonic_ns - self._ahead_since_ns >= _LASTING_NS and not self.is_epoch_over:
            self.is_epoch_over = True
            cause = (
                f"times until here are ahead of the clock by {format_duration(lead_ns)}:"
                " recording starts again on the clock as it is"
            )
            return [Gap("*", now_ns, now_ns, cause)]
        return []

    def finish(self, now: Moment) -> Reading:
        self._anchor_due_ns = 0
        return self.read(now)
