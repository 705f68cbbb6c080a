"""The one loop: waits for the next tick, a full ring or a log line, reads what is due, and hands
rows to the sink.

Everything it knows of the machine comes through its sources; everything it decides is in the pure
modules beside it.
"""

import contextlib
import os
import select
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from necroscope.errors import NecroscopeError
from necroscope.model.clocks import TimeLine
from necroscope.model.reading import Gap, Moment, Reading, Rows, Source
from necroscope.model.units import NS_PER_S, format_duration
from necroscope.recorder.budget import Budget
from necroscope.recorder.clock_watch import Clock, ClockWatch, event_row
from necroscope.recorder.gaps import FailureLedger
from necroscope.recorder.node_sources import NodeSources
from necroscope.recorder.own_cost import own_cpu_ns
from necroscope.recorder.schedule import Schedule
from necroscope.recorder.sink import Batch, Sink
from necroscope.recorder.task_capture import TaskCapture
from necroscope.recorder.triggers import NO_CPU, UNPINNED, WATCHED, Trigger, Triggers
from necroscope.segment.recording import Pin
from necroscope.settings import Settings
from necroscope.sources.procfs.interrupts import Interrupts

_LATE_TICKS: Final = 2
# A tick comes a little earlier or later than the one before it.
_TICK_JITTER_NS: Final = NS_PER_S // 20
# Samples this old still say who is on a core.
_FRESH_NS: Final = NS_PER_S // 2
_LATE_NS: Final = 1_500_000_000
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
    what is new to be told.
    """

    def __init__(
        self,
        settings: Settings,
        sources: NodeSources,
        sink: Sink,
        clock: Clock,
        time_line: TimeLine,
        flush_ns: int | None = None,
    ) -> None:
        self._settings = settings
        self._flush_ns = settings.flush_ns if flush_ns is None else flush_ns
        self._sources = sources
        self._sink = sink
        self._clocks = ClockWatch(clock, time_line)
        self._time_line = time_line
        self._failures = FailureLedger()
        self._triggers = Triggers()
        self._budget = Budget(settings.hz, settings.budget_ratio)
        self._schedule = Schedule()
        self._by_name: dict[str, Source] = {}
        self._capture = (
            TaskCapture(sources.sampler, sources.lookup, settings.host_root)
            if sources.sampler
            else None
        )
        self._batch = Batch()
        self._drained_ns = 0
        self._wake_read, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._poll = select.epoll()
        self._log_descriptor: int | None = None
        self._stopping = False
        self._segment_started_ns = 0
        self._idle_before_segment = 0
        self._flushed_ns = 0
        self._started_monotonic_ns = 0
        self._lookup_restarts = 0
        self._symbols_followed_ns = 0
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
            until_ns = None if limit_ns is None else start.monotonic_ns + limit_ns
            while not self._stopping and (until_ns is None or time.monotonic_ns() < until_ns):
                if self._turn(until_ns) and on_tick is not None:
                    on_tick(self.status, self._sink.take_notices())
            self._finish()
        finally:
            self._close()

    def _start(self) -> Moment:
        now = self._now()
        self.status.started_ns = self._symbols_followed_ns = now.time_ns
        self._started_monotonic_ns = now.monotonic_ns
        self._begin_segment(now)
        for name, tables, error in self._sources.refused:
            self._note_failure(name, tables, error, now)
        for source in self._sources.all():
            self._by_name[source.name] = source
            period_ns = round(source.period_s * NS_PER_S)
            if (
                source is not self._sources.sampler
            ):  # its rings fill by themselves, and are emptied with each flush
                self._schedule.add(source.name, period_ns, now.monotonic_ns + period_ns)
                self._read(source, self._now())
        self._register()
        return now

    def _turn(self, until_ns: int | None) -> bool:
        """Wait, then read what is ready and due; True if a tick was among it."""
        wake_ns = (
            self._schedule.next_ns()
            if until_ns is None
            else min(until_ns, self._schedule.next_ns())
        )
        ready = self._poll.poll(max(0, wake_ns - time.monotonic_ns()) / NS_PER_S)
        now = self._now()
        if ready:
            self._read_ready({descriptor for descriptor, _ in ready}, ready, now)
        due = self._schedule.take_due(now.monotonic_ns)
        for name, late_ns in due:
            source = self._by_name[name]
            if late_ns >= _LATE_NS:
                self._note_lateness(source, late_ns, now)
            if getattr(source, "idle_until_ns", 0) <= now.monotonic_ns:
                # Each at its own moment: the names of a drain may have kept us waiting.
                now = self._now()
                self._read(source, now)
        if (
            self._sources.kernel_log.fileno() != self._log_descriptor
        ):  # its reader ended, or was started again
            self._register()
        if due:
            self._after_tick(self._now())
        return bool(due)

    def _read_ready(self, descriptors: set[int], ready: list[tuple[int, int]], now: Moment) -> None:
        """Rings that are half full and log lines are read at once."""
        if self._log_descriptor in descriptors:
            self._read(self._sources.kernel_log, now)
        sampler = self._sources.sampler
        if sampler is not None and not descriptors.isdisjoint(sampler.rings.descriptors()):
            self._drain(now)
        hung_up = [descriptor for descriptor, what in ready if what & self._endings(descriptor)]
        if hung_up:
            self._let_go(hung_up)

    def _endings(self, descriptor: int) -> int:
        """/dev/kmsg answers EPOLLERR when records were overwritten before they were read
        (devkmsg_poll), and goes on.
        """
        return (
            select.EPOLLHUP
            if descriptor == self._log_descriptor
            else select.EPOLLHUP | select.EPOLLERR
        )

    def _let_go(self, descriptors: list[int]) -> None:
        """The ring of a core that went offline hangs up for ever; should the core be back by then,
        its ring is opened anew.
        """
        if self._sources.sampler is not None:
            self._sources.sampler.rings.close_descriptors(descriptors)
        self._register()
        for descriptor in descriptors:
            with contextlib.suppress(OSError):
                self._poll.unregister(descriptor)

    def _read(
        self, source: Source, now: Moment, read: Callable[[Moment], Reading] | None = None
    ) -> None:
        """One source degrades alone, whatever goes wrong in it."""
        try:
            reading = (read or source.read)(now)
        except NecroscopeError as error:
            self._note_failure(source.name, source.tables, error, now)
            return
        except Exception as error:  # noqa: BLE001 - a flight recorder outlives a bug in one of its sources
            self._note_failure(
                source.name, source.tables, NecroscopeError(f"internal error: {error!r}"), now
            )
            return
        if reading.trouble is not None:
            self._note_failure(source.name, source.tables, reading.trouble, now)
        elif source.name in self._failures:
            self._note_gaps(self._failures.recovered(source.name, now.time_ns))
        if reading.gaps:
            self._note_gaps(reading.gaps)
        for table, columns in reading.columns.items():
            self._batch.columns.append((table, columns))
            self.status.rows += len(columns)
            self.status.samples += len(columns) if table == "samples" else 0
        for table, rows in reading.rows.items():
            self._add(table, rows)
            if table in WATCHED and (triggers := self._triggers.feed(table, rows, now.time_ns)):
                self._fire(triggers, now)
        if source is self._sources.kernel_log:
            for alarm in self._sources.kernel_log.alarms:
                self._fire(self._triggers.alarm(alarm.kind, alarm.cpu, now.time_ns), now)

    def _drain(self, now: Moment) -> None:
        """Take what was sampled."""
        if self._sources.sampler is not None:
            self._drained_ns = now.monotonic_ns
            self._read(self._sources.sampler, now)

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
            self.status.last_event = f"{rows[-1][1]}: {rows[-1][11]}"

    def _fire(self, triggers: list[Trigger], now: Moment) -> None:
        for trigger in triggers:
            if trigger.kind in _TRIGGER_EVENTS:
                cpu = None if trigger.cpu == NO_CPU else trigger.cpu
                kind = _TRIGGER_EVENTS[trigger.kind]
                self._add("events", [event_row(now.time_ns, kind, cpu, trigger.detail)])
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
                self._schedule.hasten(
                    Interrupts.name, now.monotonic_ns
                )  # what came until now is told apart from what comes
            if self._capture is not None:
                if now.monotonic_ns - self._drained_ns >= _FRESH_NS:  # many cores may fire at once
                    self._drain(now)
                self._describe(partial(self._capture.capture, trigger, now.time_ns), now)

    def _describe(self, tasks: Callable[[], Rows], now: Moment) -> None:
        """What goes wrong in it costs the description only: a lookup process that was upgraded
        under us may answer otherwise.
        """
        try:
            self._add("tasks", tasks())
        except Exception as error:  # noqa: BLE001 - a flight recorder outlives a bug in one of its parts
            self._note_failure(
                "tasks", ("tasks",), NecroscopeError(f"internal error: {error!r}"), now
            )
        else:
            self._note_gaps(self._failures.recovered("tasks", now.time_ns))

    def _after_tick(self, now: Moment) -> None:
        self.status.elapsed_ns = now.monotonic_ns - self._started_monotonic_ns
        if self._capture is not None:
            self._describe(self._capture.collect, now)
            self._note_gaps(self._capture.take_gaps())
        probe = self._sources.softirq_delay
        if probe.is_resting and self._triggers.sees_stall:
            self._read(probe, now, probe.wake)
        self._follow_cpus(now)
        self._follow_symbols(now)
        self._follow_budget(now)
        is_flush_due = now.monotonic_ns - self._flushed_ns >= self._flush_ns - _TICK_JITTER_NS
        is_segment_over = self._is_segment_over(now)
        if is_flush_due or is_segment_over:
            self._drain(now)
        if (is_flush_due and self._observe_clocks()) or is_segment_over:
            self._end_segment(now)
            self._begin_segment(self._now())
        elif is_flush_due:
            self._flush(now)

    def _is_segment_over(self, now: Moment) -> bool:
        sampler = self._sources.sampler
        is_full = sampler is not None and sampler.wants_new_segment
        is_old = now.monotonic_ns - self._segment_started_ns >= self._settings.segment_ns
        return is_full or is_old or self._sink.take_loss()

    def _begin_segment(self, now: Moment) -> None:
        self._segment_started_ns = now.monotonic_ns
        self._idle_before_segment = self._idle_samples()
        # Nothing in it refers to what was lost before it: one new segment is enough, whatever ended
        # the last.
        self._sink.take_loss()
        self._sink.start_segment(now.time_ns)
        for source in self._sources.all():
            start_segment = getattr(source, "start_segment", None)
            if start_segment is not None:
                start_segment()
        self._add("anchors", [self._clocks.anchor()])

    def _end_segment(self, now: Moment) -> None:
        self._note_gaps(self._failures.end_segment(now.time_ns))
        self._flush(now)

    def _flush(self, now: Moment) -> None:
        self._flushed_ns = now.monotonic_ns
        batch, self._batch = self._batch, Batch()
        self._sink.write(batch, self._idle_samples() - self._idle_before_segment, now.time_ns)

    def _idle_samples(self) -> int:
        return self._sources.sampler.idle_dropped if self._sources.sampler is not None else 0

    def _observe_clocks(self) -> int:
        """A step of the clock begins a new segment; 0 if there was none."""
        step_ns, reading = self._clocks.observe()
        self._note_gaps(reading.gaps)
        for table, rows in reading.rows.items():
            self._add(table, rows)
        return step_ns

    def _follow_cpus(self, now: Moment) -> None:
        sampler, online = self._sources.sampler, self._sources.cores.online
        if sampler is None or not online or online == sampler.rings.cpus:
            return
        try:
            sampler.rings.follow(online, len(online))
            self._note_gaps(self._failures.recovered("cores to sample", now.time_ns))
        except NecroscopeError as error:
            self._note_failure("cores to sample", ("samples",), error, now)
        self._register()

    def _follow_symbols(self, now: Moment) -> None:
        """Names that are missing: the kernel's, known once they were asked for, and those that
        nobody was there to tell.
        """
        hidden = self._sources.sampler.hidden_symbols if self._sources.sampler is not None else None
        if hidden is not None:
            self._note_gaps(
                self._failures.failed("kernel symbols", ("frames",), hidden, now.time_ns)
            )
        restarts = self._sources.lookup.restarts
        if restarts != self._lookup_restarts:
            self._lookup_restarts = restarts
            cause = (
                "the lookup process hung, ended or could not start: functions that were asked about"
                " then have no name"
            )
            self._note_gaps([Gap("frames", self._symbols_followed_ns, now.time_ns, cause)])
        self._symbols_followed_ns = now.time_ns

    def _follow_budget(self, now: Moment) -> None:
        if not self._budget.is_asking(now.monotonic_ns):
            return
        hz = self._budget.update(own_cpu_ns(self._sources.lookup.pids), now.monotonic_ns)
        self.status.cpu_share = self._budget.share
        if hz is not None and self._sources.sampler is not None:
            cause = (
                f"the recorder used {self._budget.share:.1%} of a core: sampling at {hz} Hz instead"
                f" of {self._settings.hz}"
            )
            try:
                self._sources.sampler.rings.set_hz(hz)
            except OSError as error:  # the kernel may have lowered the highest rate it allows
                cause = f"sampling cannot be set to {hz} Hz: {error.strerror}"
            self.status.hz = hz
            self._note_gaps(self._failures.recovered("budget", now.time_ns))
            if hz < self._settings.hz:
                self._note_gaps(self._failures.failed("budget", ("samples",), cause, now.time_ns))

    def _note_lateness(self, source: Source, late_ns: int, now: Moment) -> None:
        """Counters catch up by themselves, because rows hold the time that passed; that nothing was
        seen between is a gap.
        """
        if (
            late_ns >= _LATE_TICKS * source.period_s * NS_PER_S
            and source is not self._sources.sampler
        ):
            cause = f"the recorder was not run for {format_duration(late_ns)}"
            self._note_gaps(
                [Gap(table, now.time_ns - late_ns, now.time_ns, cause) for table in source.tables]
            )

    def _note_failure(
        self, name: str, tables: tuple[str, ...], error: NecroscopeError, now: Moment
    ) -> None:
        cause = error.facts if not error.hint else f"{error.facts} ({error.hint})"
        self._note_gaps(self._failures.failed(name, tables, cause, now.time_ns))

    def _note_gaps(self, gaps: list[Gap]) -> None:
        if not gaps:
            return
        self.status.gaps += len(gaps)
        self.status.lost_samples += sum(gap.lost or 0 for gap in gaps if gap.table == "samples")
        self._add("gaps", [gap.row() for gap in gaps])

    def _register(self) -> None:
        """Made anew whenever descriptors changed: a number may have been given to another file
        since.
        """
        self._poll.close()
        self._poll = select.epoll()
        descriptors = [
            self._wake_read,
            *(self._sources.sampler.rings.descriptors() if self._sources.sampler else ()),
        ]
        self._log_descriptor = self._sources.kernel_log.fileno()
        if self._log_descriptor is not None:
            descriptors.append(self._log_descriptor)
        for descriptor in descriptors:
            self._poll.register(descriptor, select.EPOLLIN)

    def _now(self) -> Moment:
        monotonic_ns = time.monotonic_ns()
        return Moment(self._time_line.from_monotonic(monotonic_ns), monotonic_ns)

    def _finish(self) -> None:
        """A last look, so that nothing sampled is left in the rings."""
        now = self._now()
        self._drain(now)
        self._read(self._sources.kernel_log, now, self._sources.kernel_log.finish)
        if self._capture is not None:
            self._add("tasks", self._capture.close())
        self._add("anchors", [self._clocks.anchor()])
        self._end_segment(now)

    def _close(self) -> None:
        self._sources.close()
        self._poll.close()
        os.close(self._wake_read)
        wake_write, self._wake_write = self._wake_write, -1  # the number may soon be another file's
        os.close(wake_write)
