"""Many tasks with one core among them, while others are idle."""

from tests.drawn_node import DrawnNode, drawn_node
from tests.drawn_waits import wait

from necroscope.analysis.engine import diagnose


def squeezed(allowed: int = 1, others: str = ".") -> DrawnNode:
    node = drawn_node(
        f"""
        core 0:  ..........{others * 10}..........
        core 1:  ..........aabbaabbaa..........
        core 2:  ..........{others * 10}..........
        core 3:  ..........{others * 10}..........
        a: user  worker-a[50]  /app  main, compute
        b: user  worker-b[51]  /app  main, compute
        o: user  other[60]  /other  main, compute
        """
    )
    for second in range(10, 20):
        for number in range(8):
            pid = 50 + number % 4
            started = second + number / 10
            wait(node, started, 0.09, f"worker-{pid}", pid, cgroup="/app", cores_allowed=allowed)
    return node


def test_tasks_that_may_use_one_core_of_four_are_named() -> None:
    (incident,) = diagnose(squeezed()).incidents
    assert (incident.core, incident.verdict.cause) == (1, "cpuset-squeeze")
    assert "1 of 4 cores" in incident.verdict.summary


def test_tasks_that_may_run_anywhere_are_not_squeezed() -> None:
    assert not diagnose(squeezed(allowed=4)).incidents


def test_on_a_machine_without_room_nobody_is_squeezed() -> None:
    assert not diagnose(squeezed(others="o")).incidents


def test_tasks_without_quota_left_are_not_squeezed() -> None:
    node = squeezed()
    for second in (15, 20):
        node.add(
            "cgroups", second, controller="cpu", path="/app", nr_throttled=9, throttled_ns=8 * 10**9
        )
    causes = [incident.verdict.cause for incident in diagnose(node).incidents]
    assert "cpuset-squeeze" not in causes
