"""What may be under way at once."""

import pytest

from necroscope.fleet.collector.budget import Budget
from necroscope.fleet.collector.refusal import Refusal


def test_what_does_not_fit_is_told_to_come_later() -> None:
    budget = Budget(100, 10)
    with budget.reserved(60):
        with budget.reserved(40):
            assert (budget.used_bytes, budget.requests) == (100, 2)
        with pytest.raises(Refusal) as caught, budget.reserved(41):
            pass
    assert caught.value.status == 503
    assert caught.value.retry_after_s is not None
    assert 1 <= caught.value.retry_after_s <= 5


def test_many_small_ones_are_bounded_too() -> None:
    budget = Budget(100, 1)
    with budget.reserved(1), pytest.raises(Refusal), budget.reserved(1):
        pass


def test_what_failed_gives_its_place_back() -> None:
    budget = Budget(100, 10)
    with pytest.raises(ValueError, match="broken"), budget.reserved(100):
        raise ValueError("broken")
    assert (budget.used_bytes, budget.requests) == (0, 0)
