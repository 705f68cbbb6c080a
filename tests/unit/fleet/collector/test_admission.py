"""What may be under way at once."""

import contextlib

import pytest

from necroscope.fleet.collector import admission
from necroscope.fleet.collector.admission import Refusal, RequestBudget, TokenBuckets, Turns

N1, N2 = ("eu-1", "n1"), ("eu-1", "n2")


def test_what_does_not_fit_is_told_to_come_later() -> None:
    budget = RequestBudget(100, 10, 10)
    with budget.push(None) as take:
        take(60)
        with budget.push(None) as take_too:
            take_too(40)
            assert (budget.used_bytes, budget.requests) == (100, 2)
        with pytest.raises(Refusal) as caught, budget.push(None) as take_more:
            take_more(41)
    assert caught.value.status == 503
    assert caught.value.retry_after_s is not None
    assert 1 <= caught.value.retry_after_s <= 5
    assert (budget.used_bytes, budget.requests) == (0, 0)


def test_many_small_ones_are_bounded_too() -> None:
    budget = RequestBudget(100, 1, 10)
    with budget.push(None), pytest.raises(Refusal), budget.push(None):
        pass


def test_one_node_cannot_take_all_places() -> None:
    budget = RequestBudget(100, 10, 1)
    with budget.push(N1):
        with pytest.raises(Refusal) as caught, budget.push(N1):
            pass
        assert caught.value.status == 429
        with budget.push(N2), budget.push(None), budget.push(None):
            assert budget.requests == 4
    with budget.push(N1):
        assert budget.requests == 1


def test_what_failed_gives_its_place_back() -> None:
    budget = RequestBudget(100, 10, 10)
    with contextlib.suppress(ValueError), budget.push(N1) as take:
        take(100)
        raise ValueError("broken")
    assert (budget.used_bytes, budget.requests) == (0, 0)


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_a_burst_passes_and_then_one_must_wait() -> None:
    clock = Clock()
    limited = TokenBuckets(0.5, 3, clock)
    assert [limited.wait_s("eu", "n1") for _ in range(5)] == [0, 0, 0, 2, 2]
    clock.now_s += 2
    assert [limited.wait_s("eu", "n1") for _ in range(2)] == [0, 2]


def test_a_node_does_not_wait_for_another() -> None:
    limited = TokenBuckets(1, 1, Clock())
    assert limited.wait_s("eu", "n1") == 0
    assert limited.wait_s("eu", "n1") == 1
    assert limited.wait_s("eu", "n2") == 0
    assert limited.wait_s("us", "n1") == 0


def test_a_long_silence_saves_up_no_more_than_a_burst() -> None:
    clock = Clock()
    limited = TokenBuckets(10, 2, clock)
    limited.wait_s("n")
    clock.now_s += 1e6
    assert [limited.wait_s("n") > 0 for _ in range(3)] == [False, False, True]


def test_memory_is_bounded_however_many_names_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "_MOST_KEYS", 100)
    limited = TokenBuckets(1, 1, Clock())
    for number in range(1000):
        limited.wait_s(str(number))
    assert len(limited._buckets) == 100
    assert limited.wait_s("999") == 1


def test_who_finds_no_place_is_reported_at_once_and_who_waits_too_long_then() -> None:
    without_waiting = Turns(at_once=1, waiting=0, longest_wait_s=3600)
    impatient = Turns(at_once=1, waiting=1, longest_wait_s=0.001)
    for turns in (without_waiting, impatient):
        with turns.turn():
            with pytest.raises(Refusal) as caught, turns.turn():
                pass
            assert (caught.value.status, caught.value.retry_after_s) == (503, 10)
        with turns.turn():
            pass


def test_an_answer_that_fails_gives_its_turn_back() -> None:
    turns = Turns(at_once=1, waiting=0, longest_wait_s=3600)
    for _ in range(3):
        with contextlib.suppress(ValueError), turns.turn():
            raise ValueError
