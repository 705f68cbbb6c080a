"""What may be under way at once."""

import contextlib

import pytest

from necroscope.fleet.collector.budget import Budget
from necroscope.fleet.collector.refusal import Refusal

N1, N2 = ("eu-1", "n1"), ("eu-1", "n2")


def test_what_does_not_fit_is_told_to_come_later() -> None:
    budget = Budget(100, 10, 10)
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
    budget = Budget(100, 1, 10)
    with budget.push(None), pytest.raises(Refusal), budget.push(None):
        pass


def test_one_node_cannot_take_all_places() -> None:
    budget = Budget(100, 10, 1)
    with budget.push(N1):
        with pytest.raises(Refusal) as caught, budget.push(N1):
            pass
        assert caught.value.status == 429
        with budget.push(N2), budget.push(None), budget.push(None):
            assert budget.requests == 4
    with budget.push(N1):
        assert budget.requests == 1


def test_what_failed_gives_its_place_back() -> None:
    budget = Budget(100, 10, 10)
    with contextlib.suppress(ValueError), budget.push(N1) as take:
        take(100)
        raise ValueError("broken")
    assert (budget.used_bytes, budget.requests) == (0, 0)
