"""The recording's time line: monotonic time plus an offset that never steps back, and the anchors
that pin it to UTC.

Samples carry CLOCK_MONOTONIC. UTC is monotonic plus an offset that changes only when the clock is
stepped. A step forward is adopted at once (order is kept); a step back is not, because it would
put new samples before old ones: the time line runs on and the anchors say by how much the clock
differs from it.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from necroscope.model.reading import Row

STEP_NS = 100_000_000


def shift_ns(time_ns: int, realtime_ns: int) -> int:
    """How far the time line is ahead of the machine's clock at one moment, for stamps that others
    took from that clock.

    In whole steps: what is less is the jitter of two readings, and would move every stamp a little
    each time.
    """
    return round((time_ns - realtime_ns) / STEP_NS) * STEP_NS


class ClockReading(NamedTuple):
    """The machine's clocks at one instant; the kernel log's clock is known only where perf events
    can be opened.
    """

    realtime_ns: int
    monotonic_ns: int
    boottime_ns: int
    log_clock_ns: int | None = None


@dataclass(slots=True)
class TimeLine:
    """Maps monotonic and kernel-log time to the recording's UTC, and notices steps."""

    offset_ns: int
    clock_offset_ns: int = field(init=False)
    log_offset_ns: int | None = None

    def __post_init__(self) -> None:
        self.clock_offset_ns = self.offset_ns

    @classmethod
    def starting_at(cls, reading: ClockReading) -> "TimeLine":
        line = cls(reading.realtime_ns - reading.monotonic_ns)
        line.observe(reading)
        return line

    def from_monotonic(self, monotonic_ns: int) -> int:
        return monotonic_ns + self.offset_ns

    def from_log_clock(self, log_clock_ns: int) -> int:
        """Kernel log time; without an anchor of that clock it is taken for monotonic, which is
        right within seconds.
        """
        offset_ns = self.log_offset_ns if self.log_offset_ns is not None else 0
        return log_clock_ns + offset_ns + self.offset_ns

    def observe(self, reading: ClockReading) -> int:
        """Take in a new reading of the clocks; returns by how many ns the clock was stepped since
        the last one, or 0.
        """
        if reading.log_clock_ns is not None:
            self.log_offset_ns = reading.monotonic_ns - reading.log_clock_ns
        clock_offset_ns = reading.realtime_ns - reading.monotonic_ns
        step_ns = clock_offset_ns - self.clock_offset_ns
        if abs(step_ns) < STEP_NS:
            return 0
        self.clock_offset_ns = clock_offset_ns
        self.offset_ns = max(self.offset_ns, clock_offset_ns)
        return step_ns

    def anchor_row(self, reading: ClockReading) -> Row:
        return (
            self.from_monotonic(reading.monotonic_ns),
            reading.realtime_ns,
            reading.monotonic_ns,
            reading.boottime_ns,
            reading.log_clock_ns,
        )
