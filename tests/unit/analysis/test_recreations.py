"""Containers that are removed and re-created: what is a loop, and what is not."""

import json
from typing import Any

from tests.drawn_node import at, drawn_node

from necroscope.analysis.node import Node
from necroscope.analysis.recreations import RecreationLoop, find_loops

NS = 1_000_000_000


def event(kind: str, second: float, **fields: Any) -> dict[str, Any]:
    return {"kind": kind, "time": round(second * NS), "fields": json.dumps(fields)}


def lives(
    count: int,
    period: float = 11,
    age: float = 10,
    name: str = "ecs-agent",
    code: int | None = 5,
    **more: Any,
) -> list[dict[str, Any]]:
    """This many containers one after the other, each under a new id."""
    found = []
    for number in range(count):
        own = {"container": f"{number:x}" * 64, "name": name.format(number), "image": "ecs:1"}
        found.append(event("container_start", number * period, **own | more))
        found.append(event("container_die", number * period + age, **own | {"exit_code": code}))
    return found


def loop(events: list[dict[str, Any]]) -> RecreationLoop:
    (found,) = find_loops(events)
    return found


def test_a_name_that_comes_back_under_new_ids_is_a_loop_with_its_period_and_age() -> None:
    found = loop(lives(5))
    assert (found.name, found.image, found.is_failing) == ("ecs-agent", "ecs:1", True)
    assert found.describe() == "re-created every 11 s, 5 times, always 10 s old at its end"
    assert found.describe_end() == "exit code 5 in 5 of 5 ends"


def test_one_that_was_killed_tells_the_signal() -> None:
    assert loop(lives(4, code=137)).describe_end() == "exit code 137: signal 9 in 4 of 4 ends"


def test_two_lives_are_an_upgrade_and_no_loop() -> None:
    assert find_loops(lives(2)) == []


def test_two_lives_are_enough_where_something_else_tells_of_more() -> None:
    (found,) = find_loops(lives(2), least_lives=2)
    assert found.describe() == "re-created every 11 s, 2 times, always 10 s old at its end"


def test_a_job_that_ends_well_each_time_does_not_fail() -> None:
    assert not loop(lives(6, code=0)).is_failing


def test_ends_whose_exit_code_nobody_told_are_not_failures() -> None:
    assert not loop(lives(6, code=None)).is_failing


def test_a_container_that_restarts_under_its_own_id_is_left_to_its_counter() -> None:
    own = {"container": "a" * 64, "name": "web", "image": "web:1"}
    assert find_loops([event("container_start", second, **own) for second in range(9)]) == []


def test_names_made_up_for_each_are_a_loop_of_their_image_if_they_come_in_a_rhythm() -> None:
    found = loop(lives(5, name="quirky_{}"))
    assert (found.name, found.title) == (None, "of image ecs:1")


def test_a_farm_that_runs_many_of_an_image_at_once_is_no_loop() -> None:
    assert find_loops(lives(9, period=2, age=30, name="build-{}")) == []


def test_who_makes_them_is_reported_with_how_it_is_known() -> None:
    made = event("container_made", 1, name="ecs-agent", unit="ecs.service", how="conmon (pid 7)")
    found = loop([*lives(4), made])
    assert (found.unit, found.known_by) == ("ecs.service", "conmon (pid 7)")


def test_events_with_hostile_fields_are_passed_over() -> None:
    for text in (None, "", "[1]", "{", "9" * 5000, json.dumps({"container": 5, "name": ["x"]})):
        assert find_loops([{"kind": "container_start", "time": 1, "fields": text}] * 5) == []


def test_a_node_knows_the_names_of_containers_that_lived_between_two_looks() -> None:
    drawn = drawn_node("core 0: " + "." * 60)
    for row in lives(3):
        drawn.event(row["time"] / NS, row["kind"], fields=row["fields"], by_kernel=False)
    assert Node(drawn, (at(0), at(60))).started_containers["1" * 64] == "ecs-agent"
