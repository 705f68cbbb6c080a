"""The kernel log as a source: every line goes into `log` within a rate, what lines mean goes into
`events`.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from necroscope.errors import SourceUnavailable
from necroscope.model.event import Event
from necroscope.model.reading import Alarm, Gap, Moment, Reading, Rows, Source
from necroscope.model.units import NS_PER_MS, NS_PER_S
from necroscope.sources.kernel_log.journal import JournalctlReader
from necroscope.sources.kernel_log.kmsg import KmsgReader
from necroscope.sources.kernel_log.line import LogLine, LogReader
from necroscope.sources.kernel_log.patterns import PatternSet
from necroscope.sources.kernel_log.sequences import Sequencer
from necroscope.sources.kernel_log.syslog_file import SyslogReader
from necroscope.sources.readiness import Readiness

LINES_PER_SECOND: Final = 1000
BUDGET_NS: Final = 50 * NS_PER_MS
_BATCH: Final = 128
# How far a log's clock and ours may lie apart, about.
_SKEW_NS: Final = 5 * NS_PER_S
# A log with a descriptor wakes the recorder; it is looked at now and then all the same.
_LOOK_NS: Final = 10 * NS_PER_S


class KernelLog(Source):
    """Reads what has come since the last read; never waits, and never works longer than about 50
    ms.

    What does not fit into that time stays in the kernel's buffer for the next read; if it is
    overwritten there, that is a gap with a count. Lines from before the start are recorded but
    raise no alarms.
    """

    name = "kernel_log"
    tables: tuple[str, ...] = ("events", "log")

    def __init__(
        self,
        root: Path,
        to_time_ns: Callable[[int], int],
        patterns: PatternSet | None = None,
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._readiness = Readiness()
        self._root = root
        self._to_time_ns = to_time_ns
        self._sequencer = Sequencer(patterns or PatternSet())
        self._clock = clock
        self._reader: LogReader | None = None
        self._caught_up = False
        self._opened_ns = 0
        self._history_to_ns = 0
        self._second_ns = 0
        self._left = LINES_PER_SECOND

    def descriptor(self) -> int:
        return self._readiness.fileno()

    def read(self, now: Moment) -> Reading:
        self.idle_until_ns = 0
        try:
            return self._read(now)
        finally:
            # A reader that ended may have been started again, with another pipe of the same number.
            descriptor = self._reader.fileno() if self._reader is not None else None
            if descriptor is not None:
                self._readiness.watch(descriptor)

    def _read(self, now: Moment) -> Reading:
        if self._reader is None:
            self._reader = open_log(self._root, self._to_time_ns)
            self._opened_ns, self._caught_up = now.monotonic_ns, False
            # One whose history comes when it comes: its time says what is history.
            self._history_to_ns = now.time_ns - _SKEW_NS if self._reader.settles_ns else 0
        events: list[Event] = []
        log: Rows = []
        unlogged: list[LogLine] = []
        alarms: list[Alarm] = []
        stop_ns = self._clock() + BUDGET_NS
        try:
            while lines := self._reader.read_lines(_BATCH):
                self._take(lines, now, events, log, unlogged, alarms)
                if self._clock() > stop_ns:
                    break
            else:
                self._caught_up = now.monotonic_ns - self._opened_ns >= self._reader.settles_ns
                if self._caught_up and self._reader.fileno() is not None:
                    self.idle_until_ns = now.monotonic_ns + _LOOK_NS
        except SourceUnavailable:
            # What came before the failure is kept; the next read fails again.
            if not log and not unlogged:
                raise
        events += self._sequencer.flush(now.monotonic_ns)
        if self._sequencer.is_open:
            self.idle_until_ns = 0
        reading = self._reading(events, log, unlogged, self._reader.take_gaps(now.time_ns))
        reading.alarms = alarms
        return reading

    def finish(self, now: Moment) -> Reading:
        """The last read: stories still under way become events as far as they are reported."""
        try:
            reading = self.read(now)
        except SourceUnavailable as error:
            reading = Reading(trouble=error)
        rest = [event.row() for event in self._sequencer.finish()]
        if rest:
            reading.rows["events"] = reading.rows.get("events", []) + rest
        return reading

    def close(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()
        self._readiness.close()

    def _take(
        self,
        lines: list[LogLine],
        now: Moment,
        events: list[Event],
        log: Rows,
        unlogged: list[LogLine],
        alarms: list[Alarm],
    ) -> None:
        feed, heard_ns = self._sequencer.feed, now.monotonic_ns
        for line in lines:
            finished, raised = feed(line, heard_ns)
            events += finished
            if raised and self._caught_up and line.time_ns >= self._history_to_ns:
                alarms += raised
        # History is bounded by the kernel's buffer, what comes live only by its writer.
        room = self._room(heard_ns) if self._caught_up else len(lines)
        log += [line.row() for line in lines[:room]]
        unlogged += lines[room:]
        self._left -= min(room, len(lines)) if self._caught_up else 0

    def _room(self, now_ns: int) -> int:
        if now_ns - self._second_ns >= NS_PER_S:
            self._second_ns, self._left = now_ns, LINES_PER_SECOND
        return self._left

    def _reading(
        self, events: list[Event], log: Rows, unlogged: list[LogLine], gaps: list[Gap]
    ) -> Reading:
        reading = Reading(gaps=gaps)
        if events:
            reading.rows["events"] = [event.row() for event in events]
        if log:
            reading.rows["log"] = log
        if unlogged:
            times = [line.time_ns for line in unlogged]
            cause = f"more than {LINES_PER_SECOND} kernel log lines per second"
            reading.gaps.append(Gap("log", min(times), max(times), cause, lost=len(unlogged)))
        return reading


def open_log(root: Path, to_time_ns: Callable[[int], int]) -> LogReader:
    """The best log that can be read. /dev/kmsg alone has sequence numbers, and so knows what it
    lost.
    """
    refusals = []
    for open_reader, where in (
        (KmsgReader.open, root / "dev/kmsg"),
        (JournalctlReader.open, root),
        (SyslogReader.open, root),
    ):
        try:
            reader: LogReader = open_reader(where, to_time_ns)
        except SourceUnavailable as refusal:
            refusals.append(refusal.facts)
        else:
            return reader
    raise SourceUnavailable(
        f"cannot read the kernel log: {'; '.join(refusals)}",
        "give CAP_SYSLOG, or set sysctl kernel.dmesg_restrict=0; in a container mount the node's"
        " /dev/kmsg",
    )
