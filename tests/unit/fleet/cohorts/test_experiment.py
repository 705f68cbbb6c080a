"""How many nodes an experiment takes, and what it would be."""

import pytest
from tests.unit.fleet.cohorts.test_decision import ZONE, drawn

from necroscope.fleet.cohorts.decision import decide
from necroscope.fleet.cohorts.experiment import affected_needed, experiments, nodes_needed
from necroscope.fleet.cohorts.stratified import FourfoldTable


@pytest.mark.parametrize(("affected", "nodes"), [(10, 1), (5, 5), (1, 29)])
def test_so_many_well_nodes_would_surprise(affected: int, nodes: int) -> None:
    assert nodes_needed(FourfoldTable(affected, 10 - affected, 0, 50)) == nodes


def test_what_hardly_ever_fails_needs_more_nodes_than_anybody_would_change() -> None:
    assert nodes_needed(FourfoldTable(1, 9_999, 0, 10)) is None


def test_more_differences_to_choose_from_need_more_affected_nodes() -> None:
    assert affected_needed(200, 10) < affected_needed(200, 100_000)


def test_the_experiment_names_the_fact_the_place_and_the_time() -> None:
    same = ZONE.replace("b", "n").replace("c", "n").replace("a", "y")
    decision = decide(
        *drawn("xxxxxxxxx......" + "." * 30, label__zone=ZONE, unit_outcome__agent=same)
    )
    found = experiments(decision, "30 d")
    assert "where unit_outcome agent is y (zone is a), undo that" in found[0]
    assert "30 d" in found[0]
    assert "another place" in found[-1]


def test_two_nodes_are_to_be_compared_rather_than_weighed() -> None:
    decision = decide(*drawn("x.", sysctl__somaxconn="yn"))
    (found,) = experiments(decision, "1 h")
    assert "fleet diff" in found
    assert "1 affected of 2 nodes are too few" in found
