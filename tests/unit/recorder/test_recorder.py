"""The loop over sources that a test makes up; a real one runs in
tests/integration/test_record.py.
"""

import os
import select
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from necroscope.model.clocks import ClockReading, TimeLine
from necroscope.model.reading import Gap, Moment, Reading, Row
from necroscope.model.tables import TABLES
from necroscope.model.units import NS_PER_MS, NS_PER_S
from necroscope.recorder.memory import MemorySegment
from necroscope.recorder.recorder import Recorder
from necroscope.settings import parse


class FakeSource:
    """Gives the same rows at every read but the first, which has nothing to compare with."""

    online: tuple[int, ...] = ()
    is_resting = False
    descriptor: int | None = None

    def __init__(self, name: str, period_s: float, rows: list[Row] | None = None) -> None:
        self.name, self.tables, self.period_s = name, (name,), period_s
        self._rows = rows or []
        self.reads = 0
        self.alarms: list[Any] = []

    def read(self, now: Moment) -> Reading:
        self.reads += 1
        return Reading({self.name: self._rows if self.reads > 1 else []})

    def wake(self, now: Moment) -> Reading:
        self.is_resting = False
        return self.read(now)

    finish = read

    def fileno(self) -> int | None:
        return self.descriptor

    def close(self) -> None: ...


def core(**times: int) -> Row:
    given = {"elapsed_ns": NS_PER_S} | times
    return tuple(given.get(column.name, 0) for column in TABLES["cores"].columns)


def softirqs(timer: int) -> Row:
    return tuple(
        {"elapsed_ns": NS_PER_S, "timer": timer}.get(column.name, 0)
        for column in TABLES["softirqs"].columns
    )


def made(*cores: Row) -> tuple[Recorder, FakeSource, FakeSource]:
    """A recorder of these cores, with its sources of cores and of interrupts, which are read every
    10 s.
    """
    clock = SimpleNamespace(read=lambda: ClockReading(0, 0, 0, None))
    interrupts, kernel_log = FakeSource("interrupts", 10), FakeSource("log", 10)
    busy = FakeSource("cores", 0.02, list(cores))
    sources = SimpleNamespace(
        sampler=None,
        cores=busy,
        softirq_delay=FakeSource("softirq_delay", 10),
        kernel_log=kernel_log,
        lookup=SimpleNamespace(pids=(), kernel_symbols_hidden=None, restarts=0),
        refused=[],
        all=lambda: [busy, interrupts, kernel_log],
        close=lambda: None,
    )
    return (
        Recorder(parse({}), sources, MemorySegment(NS_PER_S), clock, TimeLine(0)),
        busy,
        interrupts,
    )


def reads_of_interrupts(*cores: Row) -> int:
    """Within a moment."""
    recorder, busy, interrupts = made(*cores)
    recorder.run(200 * NS_PER_MS)
    assert busy.reads > 2
    return interrupts.reads


def test_interrupts_are_read_when_a_trigger_fires() -> None:
    assert reads_of_interrupts(core(system_ns=NS_PER_S // 2)) == 1
    assert reads_of_interrupts(core(system_ns=NS_PER_S)) == 2, (
        "once more, and no more: a trigger fires on an edge"
    )


def test_what_pins_nothing_is_no_reason_to_read_interrupts() -> None:
    assert reads_of_interrupts(core(user_ns=NS_PER_S)) == 1


def test_a_description_that_fails_costs_a_gap_and_not_the_recorder() -> None:
    def fail(*_: object) -> None:
        raise TypeError("an answer in other words")

    recorder, busy, _ = made(core(cpu=1, system_ns=NS_PER_S))
    recorder._capture = SimpleNamespace(capture=fail, collect=list, take_gaps=list, close=list)  # type: ignore[assignment]
    recorder.run(200 * NS_PER_MS)
    assert busy.reads > 2
    assert recorder.status.events >= 1
    assert recorder.status.gaps >= 1


def test_what_a_description_lacks_is_a_gap() -> None:
    recorder, _, _ = made()
    gaps = [Gap("tasks", 1, 1, "no stack")]
    recorder._capture = SimpleNamespace(
        collect=list, take_gaps=lambda: [gaps.pop()] if gaps else [], close=list
    )  # type: ignore[assignment]
    recorder.run(100 * NS_PER_MS)
    assert recorder.status.gaps == 1


@pytest.mark.parametrize(
    ("timer", "rests"), [(100, True), (0, False)], ids=["softirqs run", "softirqs stand still"]
)
def test_the_probe_does_not_sleep_through_a_stall_that_counters_show(
    timer: int, rests: bool
) -> None:
    recorder, busy, interrupts = made(core(user_ns=NS_PER_S))
    probe, counted = (
        recorder._sources.softirq_delay,
        FakeSource("softirqs", 0.02, [softirqs(timer)]),
    )
    probe.is_resting = True
    recorder._sources.all = lambda: [busy, counted, interrupts]
    recorder.run(200 * NS_PER_MS)
    assert counted.reads > 2
    assert probe.is_resting is rests


def test_from_the_second_tick_on_it_is_known_how_long_it_runs_and_what_it_costs() -> None:
    recorder, _, _ = made()
    started = recorder._start()
    elapsed_ns = []
    for _ in range(3):
        recorder._turn(None)
        elapsed_ns.append(recorder.status.elapsed_ns)
    assert (
        0
        < elapsed_ns[0]
        < elapsed_ns[1]
        < elapsed_ns[2]
        <= recorder._now().monotonic_ns - started.monotonic_ns
    )
    assert recorder.status.cpu_share is not None
    recorder._close()


class LossyMemory(MemorySegment):
    """A sink that lost a batch, as a disk that hung."""

    has_lost = False
    segments = 0

    def start_segment(self, start_ns: int) -> None:
        self.segments += 1
        super().start_segment(start_ns)

    def take_loss(self) -> bool:
        has_lost, self.has_lost = self.has_lost, False
        return has_lost


@pytest.mark.parametrize(
    "is_old", [False, True], ids=["a segment under way", "a segment that is over anyway"]
)
def test_a_loss_begins_one_new_segment(is_old: bool) -> None:
    recorder, _, _ = made()
    memory = recorder._sink = LossyMemory(NS_PER_S)
    recorder._start()
    recorder._turn(None)
    memory.has_lost = True
    if is_old:
        recorder._segment_started_ns -= recorder._settings.segment_ns
    for _ in range(3):
        recorder._turn(None)
    assert memory.segments == 2
    recorder._close()


@pytest.fixture
def readable() -> Iterator[int]:
    """A pipe's end that always has something to read."""
    end, other = os.pipe()
    os.write(other, b"x")
    yield end
    os.close(end)
    os.close(other)


@pytest.mark.parametrize(
    ("what", "is_polled"),
    [(select.EPOLLIN | select.EPOLLERR, True), (select.EPOLLIN | select.EPOLLHUP, False)],
)
def test_a_kernel_log_that_was_overwritten_is_polled_on_and_one_that_hung_up_is_not(
    readable: int, what: int, is_polled: bool
) -> None:
    recorder, _, _ = made()
    kernel_log = recorder._sources.kernel_log
    kernel_log.descriptor = readable
    recorder._register()
    recorder._read_ready({readable}, [(readable, what)], recorder._now())
    assert kernel_log.reads == 1
    assert bool(recorder._poll.poll(0)) is is_polled
    recorder._close()


def test_the_new_pipe_of_a_kernel_log_that_was_opened_again_is_polled(readable: int) -> None:
    recorder, _, _ = made()
    recorder._start()
    recorder._sources.kernel_log.descriptor = readable
    recorder._turn(None)
    assert recorder._poll.poll(0) == [(readable, select.EPOLLIN)]
    recorder._sources.kernel_log.descriptor = None
    recorder._turn(None)
    assert recorder._poll.poll(0) == []
    recorder._close()


def test_a_lookup_process_that_was_left_behind_is_a_gap_of_names_once() -> None:
    recorder, _, _ = made()
    recorder._start()
    recorder._turn(None)
    before = recorder._now()
    recorder._sources.lookup.restarts = 1
    for _ in range(3):
        recorder._turn(None)
    (gap,) = recorder._batch.rows["gaps"]
    from_ns, to_ns, table, cause = gap[:4]
    assert from_ns <= before.time_ns <= to_ns
    assert (table, cause.partition(":")[0]) == (
        "frames",
        "the lookup process hung, ended or could not start",
    )
    recorder._close()


def test_a_source_that_knows_when_it_has_work_again_is_left_alone_until_then() -> None:
    recorder, busy, _ = made(core(user_ns=NS_PER_S))
    busy.idle_until_ns = recorder._start().monotonic_ns + NS_PER_S  # type: ignore[attr-defined]
    for _ in range(3):
        recorder._turn(None)
    assert busy.reads == 1
    busy.idle_until_ns = 0  # type: ignore[attr-defined]
    recorder._turn(None)
    assert busy.reads == 2
    recorder._close()
