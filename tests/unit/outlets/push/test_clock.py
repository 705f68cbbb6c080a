"""The collector's clock against ours, from four moments of each exchange."""

from necroscope.outlets.push.clock import CollectorClock

S = 10**9
MS = 10**6


def exchange(
    clock: CollectorClock, at_ns: int, offset_ns: int, there_ms: int, back_ms: int
) -> None:
    """The collector takes a quarter of a second to commit."""
    arrived_ns = at_ns + there_ms * MS + offset_ns
    answered_ns = arrived_ns + 250 * MS
    heard_ns = answered_ns - offset_ns + back_ms * MS
    clock.note(at_ns, arrived_ns, answered_ns, heard_ns)


def read_header(clock: CollectorClock, now_ns: int) -> tuple[int, int]:
    offset, error = str(clock.header(now_ns)).split()
    return int(offset), int(error)


def test_the_time_a_commit_takes_is_no_error() -> None:
    clock = CollectorClock()
    assert clock.header(0) is None
    exchange(clock, 100 * S, 2 * S, 3, 3)
    offset_ns, error_ns = read_header(clock, 100 * S + 256 * MS)
    assert offset_ns == 2 * S
    assert error_ns == 3 * MS


def test_the_truth_lies_within_the_error_however_uneven_the_way() -> None:
    clock = CollectorClock()
    exchange(clock, 100 * S, -2 * S, 40, 2)
    offset_ns, error_ns = read_header(clock, 101 * S)
    assert abs(offset_ns - -2 * S) <= error_ns < 25 * MS


def test_the_most_exact_of_the_last_minutes_is_kept_and_grows_old() -> None:
    clock = CollectorClock()
    exchange(clock, 100 * S, 2 * S, 3, 3)
    exchange(clock, 160 * S, 2 * S, 300, 10)
    offset_ns, error_ns = read_header(clock, 160 * S)
    assert offset_ns == 2 * S
    assert 3 * MS < error_ns < 40 * MS
    exchange(clock, 900 * S, 2 * S, 300, 10)
    assert read_header(clock, 901 * S)[1] > 100 * MS


def test_a_step_of_the_clock_is_taken_at_once() -> None:
    clock = CollectorClock()
    exchange(clock, 100 * S, 2 * S, 3, 3)
    exchange(clock, 160 * S, 9 * S, 30, 30)
    assert read_header(clock, 161 * S)[0] == 9 * S


def test_an_exchange_in_which_time_ran_backwards_tells_nothing() -> None:
    clock = CollectorClock()
    clock.note(100 * S, 50 * S, 40 * S, 101 * S)
    clock.note(100 * S, 50 * S, 60 * S, 101 * S)
    assert clock.header(0) is None
