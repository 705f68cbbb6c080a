"""What waits to be delivered: order, pauses, bounds, and what is said of what was given up."""

from tests.drawn_node import NS, at
from tests.unit.outlets.notify.conftest import MakeEntry

from necroscope.fleet.backoff import Backoff
from necroscope.outlets.notify.outbox import AT_ONCE, MOST, Outbox


def test_pauses_double_to_five_minutes_and_begin_anew_after_a_success() -> None:
    backoff = Backoff(lambda: 1.0)
    assert [backoff.failed(at(0), None) for _ in range(11)] == [
        1,
        2,
        4,
        8,
        16,
        32,
        64,
        128,
        256,
        300,
        300,
    ]
    backoff.succeeded()
    assert backoff.failed(at(0), None) == 1


def test_a_pause_is_at_random_down_to_a_half_and_never_shorter_than_asked_for() -> None:
    assert Backoff(lambda: 0.0).failed(at(0), None) == 0.5
    assert Backoff(lambda: 0.5).failed(at(0), 77) == 77


def test_a_clock_stepped_back_does_not_stop_it() -> None:
    backoff = Backoff(lambda: 1.0)
    backoff.failed(at(86_400), None)
    assert not backoff.is_due(at(86_400))
    assert backoff.is_due(at(86_402))
    assert backoff.is_due(at(0))


def test_oldest_first_and_none_before_its_pause_is_over(entry: MakeEntry) -> None:
    outbox = Outbox(lambda: 1.0)
    outbox.put(entry(10), at(20))
    outbox.put(entry(30), at(40))
    first = outbox.due(at(41))
    assert first is not None
    assert first.entry.incident.from_ns == at(10)
    outbox.failed(at(41), None)
    assert outbox.due(at(41.5)) is None
    assert outbox.next_ns() == at(42)
    again = outbox.due(at(42))
    assert again == first
    outbox.delivered(first)
    second = outbox.due(at(42))
    assert second is not None
    assert second.entry.incident.from_ns == at(30)
    outbox.delivered(second)
    assert outbox.due(at(42)) is None
    assert outbox.next_ns() is None


def test_beyond_the_bound_the_oldest_are_given_up_and_counted_in_the_next(
    entry: MakeEntry,
) -> None:
    outbox = Outbox(lambda: 1.0)
    for number in range(MOST + 7):
        outbox.put(entry(number), at(60 * number))
    letter = outbox.due(at(60 * MOST + 420))
    assert letter is not None
    assert (len(outbox), letter.left_out, letter.entry.incident.from_ns) == (MOST, 7, at(7))
    outbox.delivered(letter)
    following = outbox.due(at(60 * MOST + 420))
    assert following is not None
    assert following.left_out == 0


def test_a_flood_is_counted_and_not_told(entry: MakeEntry) -> None:
    outbox = Outbox(lambda: 1.0)
    for number in range(100):
        outbox.put(entry(number), at(1))
    assert len(outbox) == AT_ONCE
    outbox.put(entry(200), at(62))
    outbox.put(entry(201), at(62))
    assert len(outbox) == AT_ONCE + 1
    letter = outbox.due(at(62))
    assert letter is not None
    assert letter.left_out == 81
    outbox.put(entry(300), at(1 - 86_400))  # the clock was stepped back by a day
    assert len(outbox) == AT_ONCE + 2


def test_after_a_day_it_is_given_up(entry: MakeEntry) -> None:
    outbox = Outbox(lambda: 1.0)
    outbox.put(entry(), at(0))
    assert outbox.due(at(86_400)) is not None
    assert outbox.due(at(86_400) + NS) is None
    assert len(outbox) == 0


def test_it_survives_a_restart(entry: MakeEntry) -> None:
    outbox = Outbox(lambda: 1.0)
    outbox.put(entry(), at(20))
    again = Outbox.from_json(outbox.as_json(), lambda: 1.0)
    assert again.due(at(21)) == outbox.due(at(21))
