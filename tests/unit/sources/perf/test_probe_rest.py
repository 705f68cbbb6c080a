"""When timing every softirq would cost others too much."""

import pytest

from necroscope.model.reading import Row
from necroscope.model.units import NS_PER_MS, NS_PER_S
from necroscope.sources.perf.probe_rest import PAIR_NS, ticks_of_rest


def row(
    cpu: int, count: int, vector: str = "net_rx", worst_ns: int = 2_000, pending_ns: int = 0
) -> Row:
    return 10**18, cpu, vector, count, worst_ns, pending_ns, [count]


def rate(ratio: float) -> int:
    """Softirqs a second that would take this part of a core."""
    return round(ratio * NS_PER_S / PAIR_NS)


def test_a_usual_node_is_always_timed() -> None:
    assert ticks_of_rest([], NS_PER_S) == 0
    assert ticks_of_rest([row(cpu, rate(0.0099)) for cpu in range(96)], NS_PER_S) == 0


@pytest.mark.parametrize(("ratio", "ticks"), [(0.011, 2), (0.02, 3), (0.025, 4), (0.06, 11)])
def test_one_busy_core_brings_rests_in_which_the_mean_cost_is_half_a_percent(
    ratio: float, ticks: int
) -> None:
    assert ticks_of_rest([row(0, 100), row(5, rate(ratio))], NS_PER_S) == ticks


def test_however_busy_a_core_is_some_ticks_are_measured() -> None:
    assert ticks_of_rest([row(0, rate(0.5))], NS_PER_S) == 14


def test_vectors_of_a_core_add_up() -> None:
    rows = [row(3, rate(0.006)), row(3, rate(0.006), "timer"), row(4, rate(0.006))]
    assert ticks_of_rest(rows, NS_PER_S) == 2
    assert ticks_of_rest(rows[1:], NS_PER_S) == 0


def test_the_cost_is_that_of_the_time_that_passed() -> None:
    assert ticks_of_rest([row(0, rate(0.02))], 4 * NS_PER_S) == 0
    assert ticks_of_rest([row(0, rate(0.004))], NS_PER_S // 4) == 3


@pytest.mark.parametrize("wait", [{"worst_ns": 10 * NS_PER_MS}, {"pending_ns": 10 * NS_PER_MS}])
def test_while_any_softirq_waits_long_nothing_rests(wait: dict[str, int]) -> None:
    assert ticks_of_rest([row(0, rate(0.05)), row(7, 1, "timer", **wait)], NS_PER_S) == 0


def test_a_reading_without_time_is_no_division_by_zero() -> None:
    assert ticks_of_rest([row(0, 5)], 0) == 14
