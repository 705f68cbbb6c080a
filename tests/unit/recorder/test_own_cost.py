"""What a sample stands for is recorded: at the start of a segment, and when the rate changes."""

from necroscope.model.reading import Moment
from necroscope.recorder import own_cost
from necroscope.recorder.own_cost import OwnCost

NS = 1_000_000_000


def rows(source: OwnCost, second: int) -> list[tuple[object, ...]]:
    return source.read(Moment(1000 * NS + second * NS, second * NS)).rows.get("sampling", [])


def test_the_period_is_written_once_and_again_in_each_segment() -> None:
    source = OwnCost(100, 1.0, lambda hz: None)
    assert rows(source, 1) == [(1001 * NS, NS // 100)]
    assert rows(source, 2) == []
    source.start_segment()
    assert rows(source, 3) == [(1003 * NS, NS // 100)]


def test_a_rate_that_is_lowered_is_a_longer_period(monkeypatch) -> None:
    used_ns = iter(range(0, 100_000 * NS, 60 * NS))
    monkeypatch.setattr(own_cost, "own_cpu_ns", lambda pids: next(used_ns))
    source = OwnCost(100, 0.05, lambda hz: None)
    written = [row[1] for second in range(1, 200) for row in rows(source, second)]
    assert written[0] == NS // 100
    assert written == sorted(set(written))
    assert written[-1] > NS // 100


def test_without_a_sampler_nothing_is_said_of_samples() -> None:
    assert rows(OwnCost(100, 1.0), 1) == []
