"""A stepped clock never reorders samples, and every step is reported."""

from necroscope.model.clocks import STEP_NS, ClockReading, TimeLine
from necroscope.model.tables import TABLES
from necroscope.model.units import NS_PER_S

HOUR_NS = 3600 * NS_PER_S
UTC_NS = 1_776_249_000 * NS_PER_S


def clocks(monotonic_ns: int, stepped_ns: int = 0, log_clock_ns: int | None = None) -> ClockReading:
    return ClockReading(
        UTC_NS + monotonic_ns + stepped_ns, monotonic_ns, monotonic_ns + 7, log_clock_ns
    )


def test_monotonic_time_becomes_utc() -> None:
    line = TimeLine.starting_at(clocks(100 * NS_PER_S))
    assert line.from_monotonic(101 * NS_PER_S) == UTC_NS + 101 * NS_PER_S


def test_a_clock_that_runs_on_is_no_step() -> None:
    line = TimeLine.starting_at(clocks(0))
    assert [line.observe(clocks(second * NS_PER_S)) for second in range(1, 5)] == [0, 0, 0, 0]


def test_a_clock_stepped_back_an_hour_does_not_put_new_samples_before_old_ones() -> None:
    line = TimeLine.starting_at(clocks(0))
    before = line.from_monotonic(10 * NS_PER_S)
    assert line.observe(clocks(10 * NS_PER_S, -HOUR_NS)) == -HOUR_NS
    assert line.from_monotonic(10 * NS_PER_S + 1) == before + 1


def test_a_clock_stepped_forward_is_adopted_at_once() -> None:
    line = TimeLine.starting_at(clocks(0))
    assert line.observe(clocks(10 * NS_PER_S, HOUR_NS)) == HOUR_NS
    assert line.from_monotonic(11 * NS_PER_S) == UTC_NS + HOUR_NS + 11 * NS_PER_S


def test_a_clock_stepped_back_and_forth_never_reorders() -> None:
    line = TimeLine.starting_at(clocks(0))
    times = []
    for second, stepped_ns in enumerate([0, -HOUR_NS, -HOUR_NS, 0, HOUR_NS, 0, HOUR_NS, -HOUR_NS]):
        line.observe(clocks(second * NS_PER_S, stepped_ns))
        times.append(line.from_monotonic(second * NS_PER_S))
    assert times == sorted(times)


def test_a_step_back_that_is_undone_leaves_the_time_line_on_the_clock() -> None:
    line = TimeLine.starting_at(clocks(0))
    line.observe(clocks(1, -HOUR_NS))
    assert line.observe(clocks(2, 0)) == HOUR_NS
    assert line.from_monotonic(2) == UTC_NS + 2


def test_a_step_is_reported_once() -> None:
    line = TimeLine.starting_at(clocks(0))
    assert line.observe(clocks(1, HOUR_NS)) == HOUR_NS
    assert line.observe(clocks(2, HOUR_NS)) == 0


def test_many_small_steps_add_up_to_one_that_is_reported() -> None:
    line = TimeLine.starting_at(clocks(0))
    steps = [line.observe(clocks(n, n * STEP_NS // 4)) for n in range(1, 5)]
    assert steps == [0, 0, 0, STEP_NS]
    assert line.from_monotonic(5) == UTC_NS + STEP_NS + 5


def test_log_time_is_laid_on_the_time_line_by_its_own_clock() -> None:
    line = TimeLine.starting_at(clocks(100 * NS_PER_S, log_clock_ns=90 * NS_PER_S))
    assert line.from_log_clock(90 * NS_PER_S) == line.from_monotonic(100 * NS_PER_S)


def test_a_drifting_log_clock_is_followed() -> None:
    line = TimeLine.starting_at(clocks(100 * NS_PER_S, log_clock_ns=90 * NS_PER_S))
    line.observe(clocks(200 * NS_PER_S, log_clock_ns=189 * NS_PER_S))
    assert line.from_log_clock(189 * NS_PER_S) == line.from_monotonic(200 * NS_PER_S)


def test_a_log_clock_once_known_is_kept_when_a_reading_lacks_it() -> None:
    line = TimeLine.starting_at(clocks(100 * NS_PER_S, log_clock_ns=90 * NS_PER_S))
    line.observe(clocks(101 * NS_PER_S))
    assert line.from_log_clock(91 * NS_PER_S) == line.from_monotonic(101 * NS_PER_S)


def test_an_unknown_log_clock_is_taken_for_monotonic() -> None:
    line = TimeLine.starting_at(clocks(0))
    assert line.from_log_clock(5 * NS_PER_S) == line.from_monotonic(5 * NS_PER_S)


def test_an_anchor_shows_by_how_much_the_clock_differs_from_the_time_line() -> None:
    line = TimeLine.starting_at(clocks(0))
    reading = clocks(10 * NS_PER_S, -HOUR_NS, log_clock_ns=9 * NS_PER_S)
    line.observe(reading)
    row = line.anchor_row(reading)
    assert len(row) == len(TABLES["anchors"].columns)
    assert row == (
        UTC_NS + 10 * NS_PER_S,
        reading.realtime_ns,
        10 * NS_PER_S,
        reading.boottime_ns,
        9 * NS_PER_S,
    )
