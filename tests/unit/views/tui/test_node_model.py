"""Zombies, pressure, events and gaps."""

from typing import Any

from necroscope.views.tui.node_model import happenings, pressure, zombies

S = 1_000_000_000


def test_zombies_are_those_of_memory_with_their_growth_a_minute(node: Any) -> None:
    node.zombies(0, 100)
    node.zombies(30, 130)
    node.zombies(30, 5, controller="unified")
    found = zombies(node, node.at(35))
    assert found
    assert (found.controller, found.dying, found.per_minute) == ("memory", 130, 60)


def test_a_kernel_that_counts_only_all_controllers_together_is_shown_as_such(node: Any) -> None:
    node.zombies(0, 7, controller="unified")
    found = zombies(node, node.at(1))
    assert found
    assert (found.controller, found.dying, found.per_minute) == ("unified", 7, None)


def test_tracked_cgroups_whose_dead_cannot_be_reported_are_not_zero_dead(node: Any) -> None:
    node.zombies(0, None, tracked=70_000)
    found = zombies(node, node.at(1))
    assert found
    assert (found.dying, found.tracked) == (None, 70_000)


def test_a_count_that_is_too_old_is_no_count(node: Any) -> None:
    node.zombies(0, 7)
    assert zombies(node, node.at(60)) is None


def test_rows_of_single_cgroups_are_not_the_whole_hierarchy(node: Any) -> None:
    node.add(
        "cgroups", (node.at(0), "memory", "/system.slice", 9, None, 9, None, None, None, None, None)
    )
    assert zombies(node, node.at(1)) is None


def test_pressure_that_a_kernel_does_not_know_is_none(node: Any) -> None:
    node.add("pressure", (node.at(1), "cpu", S, S // 4, None))
    node.add("pressure", (node.at(1), "irq", S, None, None))
    assert pressure(node.tables["pressure"]) == {
        "cpu": 0.25,
        "memory": None,
        "io": None,
        "irq": None,
    }


def test_events_and_gaps_come_newest_first_and_say_who_wrote_them(node: Any) -> None:
    node.event(1, "unit_restart", "restart counter is at 9", by_kernel=False)
    node.event(3, "nic_reset", "reset", cpu=3, device="eth0")
    node.gap(2, "samples", "rings were full", lost=312, for_s=5)
    found = happenings(node.tables["events"], node.tables["gaps"])
    assert [(one.kind, one.where, one.is_alarming) for one in found] == [
        ("nic_reset", "cpu 3 eth0", True),
        ("gap", "samples", False),
        ("unit_restart", "", False),
    ]
    assert found[1].text == "rings were full (312 lost) until 10:13:27"
    assert found[2].text == "(not by the kernel) restart counter is at 9"
