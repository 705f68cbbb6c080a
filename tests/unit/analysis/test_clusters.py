"""What belongs together in time and core, and what only happens at the same time."""

import pytest
from tests.drawn_node import drawn_node
from tests.reset_node import ENA, RESET, node_with, only_incident

from necroscope.analysis.engine import diagnose


def test_a_reset_with_no_held_core_is_an_incident_of_its_own() -> None:
    node = drawn_node(
        "core 0: ..............................\ncore 1: .............................."
    )
    node.event(20, "nic_reset", "Trigger reset is on", device="eth0")
    incident = only_incident(node)
    assert incident.core is None
    assert incident.events[0].joined_by is None


def test_a_reset_that_the_driver_blames_on_the_device_is_not_joined_to_a_core_held_by_chance() -> (
    None
):
    text = (
        "TX q 7 is paused for too long (threshold 5000000). Time since last napi 21000 usec. napi"
        " scheduled: 0"
    )
    incidents = diagnose(node_with(ENA + text, *RESET)).incidents
    events = {incident.core: [event.kind for event in incident.events] for incident in incidents}
    assert events == {3: [], None: ["nic_reset"]}


@pytest.mark.parametrize("kind", ["ray_node_dead", "ray_object_lost", "ray_fetch_timeout"])
def test_a_line_of_ray_accuses_no_core_of_the_node_it_was_written_on(kind: str) -> None:
    node = drawn_node("""
        core 0:  ..........................................................................................
        core 1:  ..........kkkkkkkk........................................................................
        k: system  reader[1872]  /  Read > ksys_read, some_walk
        """).event(
        40,
        kind,
        "Node is dead because the health check failed",
        pattern=None,
        by_kernel=False,
    )
    node.event(41, "nic_reset", "reset on core 0", cpu=0)
    incidents = diagnose(node).incidents
    assert [one.core for one in incidents if kind in [event.kind for event in one.events]] == [None]
    assert {one.core: len(one.events) for one in incidents} == {1: 0, None: 1, 0: 1}


def test_bursts_on_one_core_are_one_incident_and_their_beat_is_reported() -> None:
    node = drawn_node("""
        core 0:  ............................................................
        core 1:  .....kk........kk........kk........kk........kk........kk...
        k: system  reader[1872]  /  Read > ksys_read, some_walk
        """)
    incident = only_incident(node)
    assert len([episode for episode in incident.episodes if episode.kind == "saturated"]) == 6
    assert "every 10 s" in incident.verdict.summary


def test_two_cores_held_at_different_times_are_two_incidents() -> None:
    node = drawn_node("""
        core 0:  ...kkkkk......................................
        core 1:  ...................................kkkkk......
        k: system  reader[1872]  /  Read > ksys_read, some_walk
        """)
    assert [incident.core for incident in diagnose(node).incidents] == [0, 1]
