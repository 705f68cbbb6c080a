"""Rows of the last tick and rows by second."""

from necroscope.views.tui.ticks import (
    busy_ns_of,
    by_second,
    last_read,
    modes_of,
    seconds_of,
    shares,
)

S = 1_000_000_000


def core(end_s: float, busy: float, elapsed_s: float = 1.0) -> tuple[int, ...]:
    elapsed_ns = round(elapsed_s * S)
    return (round(end_s * S), 0, elapsed_ns, round(busy * elapsed_ns), 0, 0, 0, 0, 0, 0, 0, 0)


def busy_by_second(
    rows: list[tuple[int, ...]], at_s: int, seconds: int
) -> tuple[float | None, ...]:
    return shares(by_second(rows, at_s * S, seconds), busy_ns_of)


def test_an_old_row_does_not_pass_for_the_present() -> None:
    rows = [core(9, 1), core(10, 1)]
    assert last_read(rows, 11 * S, S) == [rows[-1]]
    assert last_read(rows, 12 * S, S) == []


def test_with_a_tick_of_a_tenth_a_table_read_each_second_is_still_fresh() -> None:
    rows = [core(10, 1)]
    assert last_read(rows, 11 * S, S // 10) == rows


def test_shares_are_of_elapsed_time_so_that_missing_time_stays_missing() -> None:
    modes = modes_of((0, 0, S, S // 4, 0, S // 4, 0, 0, 0, 0, 0, 0))
    assert (sum(modes.shares), modes.busy, modes.kernel) == (0.5, 0.5, 0.25)


def test_a_tick_that_is_missing_is_a_hole() -> None:
    assert busy_by_second([core(1, 0.1), core(2, 0.2), core(4, 0.4)], 4, 4) == (0.1, 0.2, None, 0.4)


def test_ticks_that_drift_leave_no_hole() -> None:
    rows = [core(1.013 * n, 0.5, 1.013) for n in range(1, 80)]
    assert None not in busy_by_second(rows, 80, 79)


def test_a_long_tick_fills_its_seconds_and_short_ones_are_averaged() -> None:
    assert busy_by_second([core(10, 0.7, 10)], 10, 10) == (0.7,) * 10
    assert busy_by_second(
        [core(0.1 * n, 1.0 if n <= 5 else 0.0, 0.1) for n in range(1, 11)], 1, 1
    ) == (0.5,)


def test_seconds_before_the_window_are_left_out() -> None:
    assert list(seconds_of(3 * S, 10 * S, 0, 60)) == [0, 1, 2]
