"""A source that costs too much is slowed down, then switched off, and tried again."""

import pytest

from necroscope.model.units import NS_PER_MS, NS_PER_S
from necroscope.recorder.source_costs import NewPeriod, SourceCosts

LIMIT = 0.025


class Node:
    """Two sources; each minute the hostile one costs what it is told to, spread over its reads."""

    def __init__(self) -> None:
        self.costs = SourceCosts(LIMIT)
        self.costs.add("cgroups", NS_PER_S)
        self.costs.add("cores", NS_PER_S)
        self.now_ns = 0
        self.period_ns = NS_PER_S
        list(self.costs.judge(0))

    def minutes(self, read_ns: int, count: int = 1) -> list[NewPeriod]:
        """What changed in these minutes, in which each of its reads took as long as that."""
        changes = []
        for _ in range(count):
            start_ns, self.now_ns = self.now_ns, self.now_ns + 60 * NS_PER_S
            for _ in range(self.now_ns // self.period_ns - start_ns // self.period_ns):
                self.costs.spend("cgroups", read_ns)
            self.costs.spend("cores", NS_PER_MS)
            changes += self.costs.judge(self.now_ns)
            self.period_ns = changes[-1].period_ns if changes else self.period_ns
        return changes


def test_a_source_within_its_share_stays_as_it_is() -> None:
    assert Node().minutes(20 * NS_PER_MS, 5) == []


def test_one_that_costs_too_much_is_read_half_as_often_and_the_others_as_before() -> None:
    (change,) = Node().minutes(60 * NS_PER_MS)
    assert (change.name, change.period_ns) == ("cgroups", 2 * NS_PER_S)
    assert "6.0% of a core" in change.cause
    assert "read every 2 s instead of every 1 s" in change.cause


def test_it_is_slowed_down_until_it_is_within_its_share() -> None:
    node = Node()
    assert [change.period_ns // NS_PER_S for change in node.minutes(90 * NS_PER_MS, 6)] == [2, 4]


def test_what_no_pause_makes_cheap_is_switched_off_and_tried_again() -> None:
    node = Node()
    *_, last = node.minutes(450 * NS_PER_MS, 6)
    assert last.period_ns == 600 * NS_PER_S
    assert "switched off, tried again every 10 min" in last.cause
    assert node.minutes(450 * NS_PER_MS, 3) == [], "nothing was read, so nothing is known"
    (change,) = node.minutes(NS_PER_MS)
    assert change.period_ns == 16 * NS_PER_S


def test_a_read_that_keeps_the_loop_busy_counts_however_seldom_it_is() -> None:
    node = Node()
    node.period_ns = 60 * NS_PER_S
    (change,) = node.minutes(700 * NS_PER_MS)
    assert "700 ms at once" in change.cause


def test_one_that_became_cheap_is_read_as_often_as_it_wants_again() -> None:
    node = Node()
    node.minutes(90 * NS_PER_MS, 2)
    changes = node.minutes(NS_PER_MS, 5)
    assert [change.period_ns // NS_PER_S for change in changes] == [2, 1]
    assert changes[-1].cause == ""


@pytest.mark.parametrize("read_ms", [11, 25])
def test_it_does_not_swing_between_two_periods(read_ms: int) -> None:
    assert len(Node().minutes(read_ms * NS_PER_MS, 20)) <= 1
