"""The clocks as a source: steps, sleeps, anchors, and a lead that lasts."""

from necroscope.model.clocks import ClockReading, TimeLine
from necroscope.model.reading import Moment, Reading
from necroscope.model.tables import TABLES
from necroscope.model.units import NS_PER_S
from necroscope.recorder.clock_watch import ClockWatch

UTC_S = 1_760_000_000
LOG_CLOCK = TABLES["anchors"].index_of("log_clock_ns")


class SteppedClock:
    """Seconds since the start, and how far the clock was set back."""

    def __init__(self) -> None:
        self.second = 0
        self.set_back_s = 0
        self.slept_s = 0

    def read(self, *, with_log_clock: bool = True) -> ClockReading:
        realtime_s = UTC_S + self.second - self.set_back_s
        elapsed_ns = (1000 + self.second) * NS_PER_S
        log_clock_ns = elapsed_ns if with_log_clock else None
        boottime_ns = elapsed_ns + self.slept_s * NS_PER_S
        return ClockReading(realtime_s * NS_PER_S, elapsed_ns, boottime_ns, log_clock_ns)


def watched() -> tuple[SteppedClock, ClockWatch]:
    clock = SteppedClock()
    return clock, ClockWatch(clock, TimeLine.starting_at(clock.read()))


def look(clock: SteppedClock, watch: ClockWatch, second: int) -> Reading:
    clock.second = second
    return watch.read(Moment(0, (1000 + second) * NS_PER_S))


def test_a_step_begins_a_segment_and_each_segment_gets_an_anchor() -> None:
    clock, watch = watched()
    watch.start_segment()
    assert list(look(clock, watch, 3).rows) == ["anchors"]
    assert look(clock, watch, 6).rows == {}
    clock.set_back_s = 7200
    assert look(clock, watch, 9).rows.keys() == {"events", "anchors"}
    assert watch.wants_new_segment
    watch.start_segment()
    assert not watch.wants_new_segment
    assert list(look(clock, watch, 12).rows) == ["anchors"]


def test_the_logs_clock_is_read_for_an_anchor_each_minute_and_after_a_sleep() -> None:
    clock, watch = watched()
    anchors = {}
    for second in range(0, 150, 3):
        clock.slept_s = 30 * (second >= 75)
        for row in look(clock, watch, second).rows.get("anchors", []):
            anchors[second] = row[LOG_CLOCK] is not None
    assert anchors == {0: True, 60: True, 75: True, 135: True}


def test_a_clock_that_was_set_back_for_good_ends_the_epoch_with_a_gap() -> None:
    clock, watch = watched()
    clock.set_back_s = 7200
    seconds = range(3, 400, 3)
    over = [second for second in seconds if look(clock, watch, second).gaps]
    assert over == [303]
    assert watch.is_epoch_over


def test_a_clock_that_comes_back_or_is_a_little_behind_ends_nothing() -> None:
    clock, watch = watched()
    for second in range(0, 2000, 3):
        clock.set_back_s = 7200 if second % 300 < 150 else 30
        look(clock, watch, second)
    assert not watch.is_epoch_over
