"""The truth of a generated fleet: the unit does it, the zone goes with it, a few nodes disagree."""

from necroscope.fleet.generated import truth
from necroscope.fleet.generated.truth import (
    FOLLOWING,
    LEAKS,
    NOT_STARTED,
    OUTCOME,
    UNIT_FILE,
    ZONES,
    draw_nodes,
)

NODES = draw_nodes(500, 20, ["one", "two"])


def test_five_hundred_nodes_in_three_zones() -> None:
    assert len({node.name for node in NODES}) == 500
    assert {node.zone for node in NODES} == set(ZONES)


def test_every_node_says_that_it_is_generated() -> None:
    assert all(node.name.startswith("generated-") for node in NODES)


def test_twenty_facts_follow_the_zone() -> None:
    assert len(FOLLOWING) == 20
    for fact, (first, other) in FOLLOWING.items():
        assert first != other
        assert all(
            node.facts[fact] == (first if node.zone == ZONES[0] else other) for node in NODES
        )


def test_the_unit_is_enabled_everywhere_and_runs_in_one_zone() -> None:
    assert {node.facts[UNIT_FILE] for node in NODES} == {"enabled"}
    assert all(node.facts[OUTCOME] == (LEAKS if node.has_unit else NOT_STARTED) for node in NODES)
    regular = [node for node in NODES if not node.is_odd]
    assert all(node.has_unit == (node.zone == ZONES[0]) for node in regular)


def test_a_few_nodes_disagree_with_their_zone() -> None:
    odd = [node for node in NODES if node.is_odd]
    assert 10 <= len(odd) <= 40
    assert {node.has_unit for node in odd} == {True, False}
    assert all(node.has_unit != (node.zone == ZONES[0]) for node in odd)


def test_the_unit_brings_the_incidents() -> None:
    affected = [bool(node.incidents) for node in NODES if node.has_unit]
    others = [bool(node.incidents) for node in NODES if not node.has_unit]
    assert sum(affected) / len(affected) > 0.5
    assert 0 < sum(others) / len(others) < 0.05


def test_where_the_unit_was_masked_incidents_end() -> None:
    masked = [node for node in NODES if node.is_masked]
    assert len(masked) >= 20
    assert all(
        minute > truth.MASKED_DAYS * truth.DAY_MINUTES
        for node in masked
        for minute in node.incidents
    )


def test_the_same_numbers_give_the_same_fleet() -> None:
    assert draw_nodes(500, 20, ["one", "two"]) == NODES
    assert draw_nodes(500, 21, ["one", "two"]) != NODES
