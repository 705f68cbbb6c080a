"""The recorder that costs too much samples less, and more again when there is room."""

from necroscope.model.units import NS_PER_S
from necroscope.recorder.own_cost import LEAST_HZ, CpuBudget


class Node:
    """Feeds a budget with a constant share of a core, second by second."""

    def __init__(self, budget: CpuBudget) -> None:
        self.budget = budget
        self.now_ns = 0
        self.cpu_ns = 0
        budget.update(0, 0)

    def use(self, share: float, seconds: int) -> list[int]:
        rates = []
        for _ in range(seconds):
            self.now_ns += NS_PER_S
            self.cpu_ns += round(share * NS_PER_S)
            rates.append(self.budget.update(self.cpu_ns, self.now_ns))
        return [rate for rate in rates if rate is not None]


def test_within_budget_the_rate_stays() -> None:
    node = Node(CpuBudget(97, 0.05))
    assert node.use(0.049, 600) == []
    assert node.budget.hz == 97


def test_over_budget_the_rate_is_halved_after_a_minute() -> None:
    node = Node(CpuBudget(97, 0.05))
    assert node.use(0.06, 59) == []
    assert node.use(0.06, 1) == [48]
    assert node.budget.hz == 48
    assert abs(node.budget.share - 0.06) < 0.001


def test_the_share_of_the_first_minute_is_that_since_the_start_and_then_that_of_the_last_minute() -> (
    None
):
    node = Node(CpuBudget(97, 0.05))
    assert node.budget.share is None
    node.use(0.04, 1)
    assert node.budget.share == 0.04
    node.use(0.02, 59)
    assert round(node.budget.share, 4) == round((0.04 + 59 * 0.02) / 60, 4)
    node.use(0.01, 59)
    assert round(node.budget.share, 4) == round((0.04 + 59 * 0.02) / 60, 4)
    node.use(0.01, 1)
    assert round(node.budget.share, 4) == 0.01


def test_after_the_first_minute_the_cost_is_asked_for_once_a_minute() -> None:
    node = Node(CpuBudget(97, 0.05))
    asked = []
    for second in range(1, 241):
        if second * NS_PER_S >= node.budget.due_ns:
            node.budget.update(0, second * NS_PER_S)
            asked.append(second)
    assert asked == [1, *range(6, 60, 5), 60, 120, 180, 240]


def test_one_expensive_second_does_not_count() -> None:
    node = Node(CpuBudget(97, 0.05))
    node.use(0.01, 30)
    assert node.use(2.0, 1) + node.use(0.01, 90) == []


def test_the_rate_has_a_floor() -> None:
    node = Node(CpuBudget(97, 0.05))
    assert node.use(0.5, 600) == [48, 24, 12, LEAST_HZ]
    assert node.budget.hz == LEAST_HZ


def test_a_rate_asked_below_the_floor_is_left_alone() -> None:
    node = Node(CpuBudget(5, 0.05))
    assert node.use(0.5, 100) == []


def test_the_rate_rises_again_after_three_calm_minutes_but_not_above_what_was_asked() -> None:
    node = Node(CpuBudget(97, 0.05))
    node.use(0.06, 120)
    assert node.budget.hz == 24
    assert node.use(0.019, 179) == []
    assert node.use(0.019, 1) == [49]
    assert node.use(0.01, 900) == [97]


def test_calm_must_be_unbroken() -> None:
    node = Node(CpuBudget(97, 0.05))
    node.use(0.06, 60)
    node.use(0.01, 120)
    assert node.use(0.03, 60) + node.use(0.01, 120) == []
    assert node.use(0.01, 60) == [97]


def test_between_calm_and_budget_nothing_moves() -> None:
    node = Node(CpuBudget(97, 0.05))
    node.use(0.06, 60)
    assert node.use(0.03, 2000) == []
