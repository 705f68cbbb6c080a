"""The one loop: waits for the next tick, a full ring or a log line, reads what is due, and hands
rows to the sink.

Everything it knows of the machine comes through its sources; everything it decides is in the pure
modules next to it.
"""

import contextlib
import os
import select
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import Final

from necroscope.errors import NecroscopeError
from necroscope.model.clocks import TimeLine
from necroscope.model.event import Event
from necroscope.model.library_pages import release_library_pages
from necroscope.model.reading import Gap, Moment, Reading, Rows, Source, Trouble, merge_gaps
from necroscope.model.tables import TABLES
from necroscope.model.units import NS_PER_S, format_duration
from necroscope.recorder.gaps import FailureLedger
from necroscope.recorder.node_sources import NodeSources
from necroscope.recorder.schedule import Schedule
from necroscope.recorder.sink import RowBatch, Sink
from necroscope.recorder.source_costs import SourceCosts
from necroscope.recorder.triggers import NO_CPU, UNPINNED, WATCHED, Trigger, Triggers
from necroscope.segment.recording import Pin
from necroscope.settings import Settings

_LATE_TICKS: Final = 2
# A tick comes a little earlier or later than the one before it.
_TICK_JITTER_NS: Final = NS_PER_S // 20
# Samples this old still say who is on a core.
_FRESH_NS: Final = NS_PER_S // 2
_LATE_NS: Final = 1_500_000_000
# A source that is read at each event may miss something hundreds of times in a second.
_ONE_GAP_NS: Final = NS_PER_S // 10
# Of the recorder's budget, for a single source.
_SOURCE_SHARE: Final = 0.5
_KIND_AND_MESSAGE: Final = itemgetter(*map(TABLES["events"].index_of, ("kind", "message")))
_TRIGGER_EVENTS: Final = {"saturated": "core_saturated", "softirq_stall": "softirq_stall"}


@dataclass(slots=True)
class Status:
    """What the recorder can say of itself at any moment."""

    started_ns: int
    elapsed_ns: int = 0
    samples: int = 0
    rows: int = 0
    events: int = 0
    gaps: int = 0
    lost_samples: int = 0
    last_event: str = ""
    hz: int = 0
    cpu_share: float | None = None


class Recorder:
    """Runs until `stop` or for `limit_ns`. `on_tick` is called after each tick with the status and
    new notices.
    """

    def __init__(
        self,
        settings: Settings,
        sources: NodeSources,
        sink: Sink,
        time_line: TimeLine,
        flush_ns: int | None = None,
        missed: Sequence[Gap] = (),
    ) -> None:
        """`missed` is what was not recorded before it was there."""
        self._settings = settings
        self._missed = list(missed)
        self._flush_ns = settings.flush_ns if flush_ns is None else flush_ns
        self._node = sources
        self._sources = sources.sources
        self._capture = sources.capture
        self._sink = sink
        self._time_line = time_line
        self._failures = FailureLedger()
        self._triggers = Triggers()
        self._schedule = Schedule()
        self._costs = SourceCosts(settings.budget_ratio * _SOURCE_SHARE)
        self._by_name = {source.name: source for source in self._sources}
        self._batch = RowBatch()
        self._gaps: list[Gap] = []
        self._drained_ns = 0
        self._wake_read, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._poll = select.epoll()
        self._polled: dict[int, Source] = {}
        self._stopping = False
        self._segment_started_ns = 0
        self._idle_samples = 0
        self._flushed_ns = 0
        self._started_monotonic_ns = 0
        self.status = Status(0, hz=settings.hz)

    def stop(self) -> None:
        """Ask the loop to end; safe in a signal handler and from another thread, also when it has
        ended.
        """
        self._stopping = True
        with contextlib.suppress(OSError):
            os.write(self._wake_write, b"x")

    def notices(self) -> list[str]:
        return self._failures.causes()

    def run(
        self,
        limit_ns: int | None = None,
        on_tick: Callable[[Status, list[str]], None] | None = None,
    ) -> None:
        try:
            start = self._start()
            release_library_pages()
            until_ns = None if limit_ns is None else start.monotonic_ns + limit_ns
            while not self._stopping and (until_ns is None or time.monotonic_ns() < until_ns):
                if self._turn(until_ns) and on_tick is not None:
                    on_tick(self.status, self._sink.take_notices())
            self._finish()
        finally:
            self._close()

    def _start(self) -> Moment:
        now = self._now()
        self.status.started_ns = now.time_ns
        self._started_monotonic_ns = now.monotonic_ns
        self._begin_segment(now)
        if self._missed:
            self._note_gaps(self._missed)
            self._flush(now)  # before it may be cut off itself
        for trouble in self._node.refused:
            self._note_gaps(self._failures.follow(trouble.name, [trouble], now.time_ns))
        self._poll.register(self._wake_read, select.EPOLLIN)
        for source in self._sources:
            if not source.is_buffered:
                period_ns = round(source.period_s * NS_PER_S)
                self._schedule.add(source.name, period_ns, now.monotonic_ns + period_ns)
                self._read(source, self._now())
                # From here on: what is there at the start is read once.
                self._costs.add(source.name, period_ns)
            descriptor = source.descriptor()
            if descriptor is not None:
                self._polled[descriptor] = source
                self._poll.register(descriptor, select.EPOLLIN)
        return now

    def _turn(self, until_ns: int | None) -> bool:
        """Wait, then read what is ready and due; True if a tick was among it."""
        wake_ns = self._schedule.next_ns()
        if until_ns is not None:
            wake_ns = min(until_ns, wake_ns)
        ready = self._poll.poll(max(0, wake_ns - time.monotonic_ns()) / NS_PER_S)
        now = self._now()
        for descriptor, _ in ready:
            if descriptor in self._polled:
                self._read(self._polled[descriptor], now)
        due = self._schedule.take_due(now.monotonic_ns)
        for name, late_ns in due:
            source = self._by_name[name]
            if late_ns >= _LATE_NS:
                self._note_lateness(source, late_ns, now)
            if source.idle_until_ns <= now.monotonic_ns:
                # Each at its own moment: the names of a drain may have kept us waiting.
                now = self._now()
                self._read(source, now)
        if due:
            self._after_tick(self._now())
        return bool(due)

    def _read(
        self, source: Source, now: Moment, read: Callable[[Moment], Reading | None] | None = None
    ) -> None:
        """One source degrades alone, whatever goes wrong in it."""
        started_ns = time.thread_time_ns()
        try:
            reading = (read or source.read)(now)
        except NecroscopeError as error:
            self._note_failure(source, error, now)
            return
        except Exception as error:  # noqa: BLE001 - a flight recorder outlives a bug in one of its sources
            self._note_failure(source, NecroscopeError(f"internal error: {error!r}"), now)
            return
        finally:
            self._costs.spend(source.name, time.thread_time_ns() - started_ns)
        if reading is None:
            return
        if reading.trouble is not None:
            self._note_failure(source, reading.trouble, now, reading.parts)
        else:
            self._note_gaps(self._failures.follow(source.name, reading.parts, now.time_ns))
        self._note_gaps(reading.gaps)
        self._idle_samples += reading.idle_samples
        for table, columns in reading.columns.items():
            self._batch.columns.append((table, columns))
            self.status.rows += len(columns)
            self.status.samples += len(columns) if table == "samples" else 0
        for table, rows in reading.rows.items():
            self._add(table, rows)
            if table in WATCHED and (triggers := self._triggers.feed(table, rows, now.time_ns)):
                self._fire(triggers, now)
        for alarm in reading.alarms:
            fired = self._triggers.alarm(
                alarm.kind, alarm.cpu, now.time_ns, by_kernel=alarm.by_kernel
            )
            self._fire(fired, now)

    def _limit_costs(self, now: Moment) -> None:
        """A source that costs too much is read less often, and that is a gap of its tables."""
        for name, period_ns, cause in self._costs.judge(now.monotonic_ns):
            source = self._by_name[name]
            self._schedule.add(name, period_ns, now.monotonic_ns + period_ns)
            if (descriptor := source.descriptor()) in self._polled and descriptor is not None:
                self._poll.modify(descriptor, 0 if cause else select.EPOLLIN)
            troubles = [Trouble(f"cost of {name}", source.tables, NecroscopeError(cause))]
            self._note_gaps(
                self._failures.follow(f"cost of {name}", troubles if cause else [], now.time_ns)
            )

    def _drain(self, now: Moment) -> None:
        """Take what waits in buffers."""
        self._drained_ns = now.monotonic_ns
        for source in self._sources:
            if source.is_buffered:
                self._read(source, now)

    def _add(self, table: str, rows: Rows) -> None:
        if not rows:
            return
        batch = self._batch.rows
        if table in batch:
            batch[table] += rows
        else:
            batch[table] = rows[:]
        self.status.rows += len(rows)
        if table == "events":
            self.status.events += len(rows)
            self.status.last_event = "{}: {}".format(*_KIND_AND_MESSAGE(rows[-1]))

    def _fire(self, triggers: list[Trigger], now: Moment) -> None:
        for trigger in triggers:
            if trigger.kind in _TRIGGER_EVENTS:
                cpu = None if trigger.cpu == NO_CPU else trigger.cpu
                kind = _TRIGGER_EVENTS[trigger.kind]
                event = Event(time_ns=now.time_ns, kind=kind, cpu=cpu, message=trigger.detail)
                self._add("events", [event.row()])
            settings = self._settings
            reason = f"{trigger.kind}: {trigger.detail}"
            if trigger.kind not in UNPINNED:
                self._sink.pin(
                    Pin(
                        now.time_ns - settings.pin_before_ns,
                        now.time_ns + settings.pin_after_ns,
                        reason,
                    )
                )
                for source in self._sources:
                    if source.is_read_at_trigger:
                        self._schedule.hasten(source.name, now.monotonic_ns)
            if self._capture is not None:
                if now.monotonic_ns - self._drained_ns >= _FRESH_NS:  # many cores may fire at once
                    self._drain(now)
                self._describe(partial(self._capture.capture, trigger, now.time_ns), now)

    def _describe(self, tasks: Callable[[], Rows], now: Moment) -> None:
        """What goes wrong in it costs the description only: a lookup process that was upgraded
        under us may answer otherwise.
        """
        troubles = []
        try:
            self._add("tasks", tasks())
        except Exception as error:  # noqa: BLE001 - a flight recorder outlives a bug in one of its parts
            failure = NecroscopeError(f"internal error: {error!r}")
            troubles = [Trouble("tasks", ("tasks",), failure)]
        self._note_gaps(self._failures.follow("tasks", troubles, now.time_ns))

    def _after_tick(self, now: Moment) -> None:
        self.status.elapsed_ns = now.monotonic_ns - self._started_monotonic_ns
        self.status.hz, self.status.cpu_share = self._node.own_cost.hz, self._node.own_cost.share
        if self._capture is not None:
            self._describe(self._capture.collect, now)
            self._note_gaps(self._capture.take_gaps())
        self._limit_costs(now)
        if self._triggers.sees_stall:
            for source in self._sources:
                if source.is_resting:
                    source.wake()
                    self._read(source, now)
        is_flush_due = now.monotonic_ns - self._flushed_ns >= self._flush_ns - _TICK_JITTER_NS
        is_segment_over = self._is_segment_over(now)
        if is_flush_due or is_segment_over:
            self._drain(now)
        if is_segment_over or any(source.wants_new_segment for source in self._sources):
            self._end_segment(now)
            self._begin_segment(self._now())
        elif is_flush_due:
            self._flush(now)

    def _is_segment_over(self, now: Moment) -> bool:
        is_old = now.monotonic_ns - self._segment_started_ns >= self._settings.segment_ns
        return is_old or self._sink.take_loss()

    def _begin_segment(self, now: Moment) -> None:
        self._segment_started_ns = now.monotonic_ns
        self._idle_samples = 0
        # Nothing in it refers to what was lost before it: one new segment is enough, whatever ended
        # the last.
        self._sink.take_loss()
        self._sink.start_segment(now.time_ns)
        for source in self._sources:
            source.start_segment()

    def _end_segment(self, now: Moment) -> None:
        self._note_gaps(self._failures.end_segment(now.time_ns))
        self._flush(now)

    def _flush(self, now: Moment) -> None:
        self._flushed_ns = now.monotonic_ns
        gaps, self._gaps = merge_gaps(self._gaps, _ONE_GAP_NS), []
        self.status.gaps += len(gaps)
        self._add("gaps", [gap.row() for gap in gaps])
        batch, self._batch = self._batch, RowBatch()
        self._sink.write(batch, self._idle_samples, now.time_ns)

    def _note_lateness(self, source: Source, late_ns: int, now: Moment) -> None:
        """Counters catch up by themselves, because rows hold the time that passed; that nothing was
        seen between is a gap.
        """
        if late_ns >= _LATE_TICKS * source.period_s * NS_PER_S:
            cause = f"the recorder was not run for {format_duration(late_ns)}"
            self._note_gaps(
                [Gap(table, now.time_ns - late_ns, now.time_ns, cause) for table in source.tables]
            )

    def _note_failure(
        self, source: Source, error: NecroscopeError, now: Moment, parts: tuple[Trouble, ...] = ()
    ) -> None:
        troubles = [Trouble(source.name, source.tables, error), *parts]
        self._note_gaps(self._failures.follow(source.name, troubles, now.time_ns))

    def _note_gaps(self, gaps: list[Gap]) -> None:
        self._gaps += gaps
        self.status.lost_samples += sum(gap.lost or 0 for gap in gaps if gap.table == "samples")

    def _now(self) -> Moment:
        monotonic_ns = time.monotonic_ns()
        return Moment(self._time_line.from_monotonic(monotonic_ns), monotonic_ns)

    def _finish(self) -> None:
        now = self._now()
        for source in self._sources:
            self._read(source, now, source.finish)
        if self._capture is not None:
            self._add("tasks", self._capture.close())
        self._end_segment(now)

    def _close(self) -> None:
        self._node.close()
        self._poll.close()
        os.close(self._wake_read)
        wake_write, self._wake_write = self._wake_write, -1  # the number may soon be another file's
        os.close(wake_write)
