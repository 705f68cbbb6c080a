"""The token bucket."""

import pytest

from necroscope.fleet.collector import rates
from necroscope.fleet.collector.rates import Rates


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_a_burst_passes_and_then_one_must_wait() -> None:
    clock = Clock()
    limited = Rates(0.5, 3, clock)
    assert [limited.wait_s("eu", "n1") for _ in range(5)] == [0, 0, 0, 2, 2]
    clock.now_s += 2
    assert [limited.wait_s("eu", "n1") for _ in range(2)] == [0, 2]


def test_a_node_does_not_wait_for_another() -> None:
    limited = Rates(1, 1, Clock())
    assert limited.wait_s("eu", "n1") == 0
    assert limited.wait_s("eu", "n1") == 1
    assert limited.wait_s("eu", "n2") == 0
    assert limited.wait_s("us", "n1") == 0


def test_a_long_silence_saves_up_no_more_than_a_burst() -> None:
    clock = Clock()
    limited = Rates(10, 2, clock)
    limited.wait_s("n")
    clock.now_s += 1e6
    assert [limited.wait_s("n") > 0 for _ in range(3)] == [False, False, True]


def test_memory_is_bounded_however_many_names_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rates, "_MOST_KEYS", 100)
    limited = Rates(1, 1, Clock())
    for number in range(1000):
        limited.wait_s(str(number))
    assert len(limited._buckets) == 100
    assert limited.wait_s("999") == 1
