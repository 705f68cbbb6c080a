"""The clock stepped back and forth by an hour: order stays, the step is an event, what it skips is
a gap, anchors tell both.

The machine's clock is left alone: the recorder is given one that steps.
"""

import itertools
from pathlib import Path

import pytest

from necroscope.model.clocks import ClockReading, TimeLine
from necroscope.model.units import NS_PER_S
from necroscope.recorder.disk import Disk
from necroscope.recorder.node_sources import open_sources
from necroscope.recorder.recorder import Recorder, Status
from necroscope.recorder.retention import RetentionLimits
from necroscope.recorder.sink import RowBatch
from necroscope.segment.journal import SegmentHeader
from necroscope.segment.recording import Identity, make_recording
from necroscope.settings import parse
from necroscope.sources.perf.log_clock import LogClock
from necroscope.store.query import Store

pytestmark = [pytest.mark.kernel, pytest.mark.root]
HOUR_NS = 3600 * NS_PER_S
# Where the clock stands, relative to the true time, from the tenth tick on, from the twentieth, and
# so on.
STEPS_NS = (0, -HOUR_NS, 0, HOUR_NS, 0)
TICKS_A_STEP = 8


class SteppedClock:
    """The machine's clocks, with a realtime that is `step_ns` off."""

    def __init__(self, clock: LogClock) -> None:
        self._clock = clock
        self.step_ns = 0

    def read(self, *, with_log_clock: bool = True) -> ClockReading:
        reading = self._clock.read(with_log_clock=with_log_clock)
        return reading._replace(realtime_ns=reading.realtime_ns + self.step_ns)


class WatchedDisk(Disk):
    """Keeps the times of samples in the order in which they were handed over."""

    sample_times: list[int]

    def write(self, batch: RowBatch, idle_samples: int, now_ns: int) -> None:
        for table, columns in batch.columns:
            if table == "samples":
                self.sample_times += memoryview(columns.buffers[1]).cast("q").tolist()
        super().write(batch, idle_samples, now_ns)


def record_through_steps(directory: Path) -> list[int]:
    """Times of samples as they were written."""
    settings = parse({"tick": "100ms", "flush": "100ms"})
    log_clock = LogClock()
    clock = SteppedClock(log_clock)
    time_line = TimeLine.starting_at(clock.read())
    make_recording(directory, Identity("node", "boot", "test"))

    def header(segment: str, start_ns: int) -> SegmentHeader:
        return SegmentHeader(segment, "node", "boot", start_ns, 2)

    start_ns = time_line.from_monotonic(clock.read().monotonic_ns)
    disk = WatchedDisk(directory, header, RetentionLimits(1 << 30, 1 << 62, 0), 0.0, start_ns)
    disk.sample_times = []
    recorder = Recorder(settings, open_sources(settings, clock, time_line), disk, time_line)
    ticks = itertools.count()

    def step(_: Status, __: list[str]) -> None:
        turn = next(ticks) // TICKS_A_STEP
        if turn < len(STEPS_NS):
            clock.step_ns = STEPS_NS[turn]
        else:
            recorder.stop()

    recorder.run(60 * NS_PER_S, step)
    disk.close()
    return disk.sample_times


def test_a_stepped_clock_reorders_nothing_and_is_reported(tmp_path, busy, leaks):
    spinner = busy("while True: pass")
    sample_times = record_through_steps(tmp_path / "recording")
    spinner.kill()
    spinner.wait()
    store = Store.open(tmp_path / "recording")
    assert_steps_are_events(store)
    assert_order_is_that_of_the_monotonic_clock(store)
    assert sample_times == sorted(sample_times)
    assert len(sample_times) > 97
    assert_skipped_hour_is_a_gap(store)
    offsets_ns = [row["realtime_ns"] - row["time"] for row in rows_of(store, "anchors")]
    for expected_ns in (0, -HOUR_NS):
        assert any(abs(offset_ns - expected_ns) < NS_PER_S for offset_ns in offsets_ns), (
            "the clock, as far as it is off the line"
        )
    assert store.info().segments == len(STEPS_NS)
    assert leaks() == []


def rows_of(store: Store, table: str) -> list[dict]:
    return list(store.rows(table, 0, 1 << 62).to_pylist())


def assert_steps_are_events(store: Store) -> None:
    said = [row["message"] for row in rows_of(store, "events") if row["kind"] == "clock_step"]
    directions = [next(word for word in ("forward", "back") if word in message) for message in said]
    assert directions == ["back", "forward", "forward", "back"]


def assert_order_is_that_of_the_monotonic_clock(store: Store) -> None:
    anchors = sorted(rows_of(store, "anchors"), key=lambda row: row["monotonic_ns"])
    assert [row["time"] for row in anchors] == sorted(row["time"] for row in anchors)
    rows = store.rows("cores", 0, 1 << 62, cpus=[0]).to_pylist()
    # Differences are measured on the monotonic clock: no row is longer than the others, and the
    # time line has one jump.
    assert max(row["elapsed_ns"] for row in rows) < 60 * NS_PER_S
    jumps = [
        later["time"] - earlier["time"] - later["elapsed_ns"]
        for earlier, later in itertools.pairwise(rows)
    ]
    assert [round(jump / HOUR_NS) for jump in jumps if abs(jump) > NS_PER_S // 100] == [1]


def assert_skipped_hour_is_a_gap(store: Store) -> None:
    (gap,) = (row for row in rows_of(store, "gaps") if row["table"] == "*")
    assert gap["end"] - gap["time"] == pytest.approx(HOUR_NS, abs=NS_PER_S)
    assert "stepped forward by 1 h" in gap["cause"]
    assert not any(gap["time"] < row["time"] < gap["end"] for row in rows_of(store, "cores"))
