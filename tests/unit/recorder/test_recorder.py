"""The loop over sources that a test makes up; a real one runs in
tests/integration/test_record.py.
"""

import os
import time
from collections.abc import Sequence
from types import SimpleNamespace

import pytest

from necroscope.errors import NecroscopeError
from necroscope.model.clocks import TimeLine
from necroscope.model.reading import Gap, Moment, Reading, Row, Source, Trouble
from necroscope.model.tables import TABLES
from necroscope.model.units import NS_PER_MS, NS_PER_S
from necroscope.recorder.memory import MemorySegment
from necroscope.recorder.node_sources import NodeSources
from necroscope.recorder.own_cost import OwnCost
from necroscope.recorder.recorder import Recorder
from necroscope.settings import parse


class FakeSource(Source):
    """Gives the same rows at every read but the first, which has nothing to compare with."""

    def __init__(self, name: str, period_s: float, rows: list[Row] | None = None) -> None:
        self.name, self.tables, self.period_s = name, (name,), period_s
        self._rows = rows or []
        self.reads = 0
        self.rests = False

    @property
    def is_resting(self) -> bool:
        return self.rests

    def wake(self) -> None:
        self.rests = False

    def read(self, now: Moment) -> Reading:
        self.reads += 1
        return Reading({self.name: self._rows if self.reads > 1 else []})


def core(**times: int) -> Row:
    given = {"elapsed_ns": NS_PER_S} | times
    return tuple(given.get(column.name, 0) for column in TABLES["cores"].columns)


def softirqs(timer: int) -> Row:
    return tuple(
        {"elapsed_ns": NS_PER_S, "timer": timer}.get(column.name, 0)
        for column in TABLES["softirqs"].columns
    )


def made(*cores: Row, others: Sequence[Source] = ()) -> tuple[Recorder, FakeSource, FakeSource]:
    """A recorder of these cores, with its sources of cores and of interrupts, which are read every
    10 s.
    """
    interrupts, busy = FakeSource("interrupts", 10), FakeSource("cores", 0.02, list(cores))
    interrupts.is_read_at_trigger = True
    own_cost = OwnCost(97, 0.05)
    own_cost.period_s = 0.02
    node = NodeSources([busy, interrupts, *others, own_cost], own_cost)
    return (
        Recorder(parse({}), node, MemorySegment(NS_PER_S), TimeLine(0)),
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
    probe, counted = (
        FakeSource("softirq_delay", 10),
        FakeSource("softirqs", 0.02, [softirqs(timer)]),
    )
    probe.rests = True
    recorder, *_ = made(core(user_ns=NS_PER_S), others=[probe, counted])
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


class PipeSource(FakeSource):
    """Takes a byte with each read."""

    def __init__(self) -> None:
        super().__init__("log", 10)
        self.pipe = os.pipe()

    def descriptor(self) -> int:
        return self.pipe[0]

    def read(self, now: Moment) -> Reading:
        if self.reads:
            os.read(self.pipe[0], 1)
        return super().read(now)

    def close(self) -> None:
        for end in self.pipe:
            os.close(end)


def test_a_source_whose_descriptor_is_readable_is_read_at_once() -> None:
    source = PipeSource()
    recorder, *_ = made(others=[source])
    recorder._start()
    os.write(source.pipe[1], b"xx")
    for reads in (2, 3, 3):
        recorder._turn(None)
        assert source.reads == reads
    recorder._close()


def written_gaps(recorder: Recorder) -> list[Row]:
    """Once they are flushed."""
    recorder._flush(recorder._now())
    return recorder._sink.rows("gaps", 0, 1 << 62)  # type: ignore[attr-defined, no-any-return]


class TroubledSource(FakeSource):
    """Fails in a part, as a whole, or not at all."""

    trouble: NecroscopeError | None = None
    parts: tuple[Trouble, ...] = ()

    def read(self, now: Moment) -> Reading:
        return Reading(trouble=self.trouble, parts=self.parts)


def test_each_trouble_of_a_source_is_a_gap_of_its_own_tables() -> None:
    source = TroubledSource("stacks", 10)
    recorder, *_ = made(others=[source])
    recorder._start()

    def notices_after(trouble: str, *parts: str) -> list[str]:
        source.trouble = NecroscopeError(trouble) if trouble else None
        source.parts = tuple(Trouble(part, (part,), NecroscopeError("gone")) for part in parts)
        recorder._read(source, recorder._now())
        return recorder.notices()

    assert notices_after("", "frames") == ["frames: gone"]
    assert notices_after("broken", "frames") == ["frames: gone", "stacks: broken"]
    assert notices_after("", "frames", "samples") == ["frames: gone", "samples: gone"]
    assert notices_after("") == []
    assert [(row[2], row[3], row[0] < row[1]) for row in written_gaps(recorder)] == [
        ("frames", "gone", True),
        ("stacks", "broken", True),
        ("samples", "gone", True),
    ]
    recorder._close()


class LossySource(FakeSource):
    """Each read finds that something has just been lost."""

    def read(self, now: Moment) -> Reading:
        return Reading(gaps=[Gap("log", now.time_ns, now.time_ns, "too many lines", lost=2)])


def test_losses_in_quick_succession_are_one_gap() -> None:
    source = LossySource("log", 10)
    recorder, *_ = made(others=[source])
    recorder._start()
    began = recorder._now()
    for read in range(300):
        at_ns = read * NS_PER_MS
        recorder._read(source, Moment(began.time_ns + at_ns, began.monotonic_ns + at_ns))
    (gap,) = written_gaps(recorder)
    assert gap[1] - gap[0] >= 299 * NS_PER_MS
    assert gap[5] == 602  # with the read at the start
    assert recorder.status.gaps == 1
    recorder._close()


def test_a_source_that_knows_when_it_has_work_again_is_left_alone_until_then() -> None:
    recorder, busy, _ = made(core(user_ns=NS_PER_S))
    busy.idle_until_ns = recorder._start().monotonic_ns + NS_PER_S
    for _ in range(3):
        recorder._turn(None)
    assert busy.reads == 1
    busy.idle_until_ns = 0
    recorder._turn(None)
    assert busy.reads == 2
    recorder._close()


class CostlySource(FakeSource):
    """Each read keeps the loop busy, as a hundred thousand cgroups would."""

    def read(self, now: Moment) -> Reading:
        until_ns = time.thread_time_ns() + 5 * NS_PER_MS
        while time.thread_time_ns() < until_ns:
            pass
        return super().read(now)


def test_a_source_that_costs_too_much_is_slowed_down_with_a_gap(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("necroscope.recorder.source_costs._WINDOW_NS", 50 * NS_PER_MS)
    costly = CostlySource("cgroups", 0.01)
    recorder, busy, _ = made(core(), others=[costly])
    recorder.run(NS_PER_S)
    (cause,) = [cause for cause in recorder.notices() if "cgroups" in cause]
    assert "of a core" in cause
    assert busy.reads > 2 * costly.reads
    written = recorder._sink.rows("gaps", 0, 1 << 62)  # type: ignore[attr-defined]
    assert {row[2] for row in written if "of a core" in str(row[3])} == {"cgroups"}
