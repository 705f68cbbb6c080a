"""Numbers and versions as what they are: a cut through their order is a difference."""

import numpy as np
import pytest

from necroscope.fleet.cohorts.columns import matrix_of
from necroscope.fleet.cohorts.decision import Separation, decide
from necroscope.fleet.cohorts.ordered import order_key

NODES = 200


@pytest.mark.parametrize(
    ("less", "more"),
    [
        ("9", "10"),
        ("-3", "2.5"),
        ("6.8.0-9", "6.8.0-1018"),
        ("6.8.0-1018-aws", "6.8.0-1021-aws"),
        ("1:2.3-4ubuntu5", "1:2.3-4ubuntu10"),
        ("2026-09-30", "2026-10-01"),
    ],
)
def test_numbers_and_versions_are_in_their_order(less: str, more: str) -> None:
    low, high = order_key(less), order_key(more)
    assert low is not None
    assert high is not None
    assert low < high


@pytest.mark.parametrize("text", ["", "enabled", "91be44", "sha256:5", "rx 1024", "1" * 200, "1."])
def test_what_has_no_order_is_given_none(text: str) -> None:
    assert order_key(text) is None


def test_a_version_from_which_on_nodes_fail_is_named_as_a_cut() -> None:
    """Eight versions, each on too few nodes to say anything by itself."""
    rng = np.random.default_rng(1)
    build = rng.integers(0, 8, NODES)
    columns = {
        ("package", "driver:amd64"): [f"2.{9 + each}.0-1" for each in build],
        **{
            ("sysctl", f"n{n}"): [str(each) for each in rng.integers(0, 3, NODES)]
            for n in range(50)
        },
    }
    affected = (build >= 4) & (rng.random(NODES) < 0.6)
    decision = decide(matrix_of([f"n{n}" for n in range(NODES)], columns), affected)
    assert decision.outcome is Separation.SEPARATED
    assert decision.first is not None
    assert decision.first.candidate.name == "package driver:amd64 is at least 2.13.0-1"
    assert decision.first.candidate.table.with_it == int((build >= 4).sum())


def test_a_number_of_its_own_on_every_node_can_matter_by_its_size() -> None:
    rng = np.random.default_rng(2)
    memory = rng.choice(100_000, NODES, replace=False)
    affected = (memory < 30_000) & (rng.random(NODES) < 0.7)
    columns = {("memory", "total_mib"): [str(each) for each in memory.tolist()]}
    decision = decide(matrix_of([f"n{n}" for n in range(NODES)], columns), affected)
    assert decision.first is not None
    (predicate,) = decision.first.candidate.predicates
    assert (predicate.is_ordered, predicate.is_negated) == (True, True)
    assert int(str(predicate.value)) == pytest.approx(30_000, rel=0.15)
    assert str(predicate).startswith("memory total_mib is below ")


def test_chance_finds_no_cut_more_often_than_it_may() -> None:
    rng = np.random.default_rng(3)
    named = 0
    for _ in range(60):
        columns = {
            ("sysctl", f"n{number}"): [str(each) for each in rng.integers(0, 1_000, NODES)]
            for number in range(20)
        }
        matrix = matrix_of([f"n{number}" for number in range(NODES)], columns)
        decision = decide(matrix, rng.random(NODES) < 0.2)
        named += decision.outcome is Separation.SEPARATED
    assert named <= 5


def test_identities_are_not_cut_and_a_fact_that_some_lack_is_not_either() -> None:
    affected = np.arange(NODES) < 60
    columns: dict[tuple[str, str], list[str | None]] = {
        ("cloud", "instance_id"): [str(number) for number in range(NODES)],
        ("memory", "some"): [str(number) if number % 2 else None for number in range(NODES)],
    }
    decision = decide(matrix_of([f"n{number}" for number in range(NODES)], columns), affected)
    ordered = [
        each
        for leader in decision.leaders
        for each in leader.candidate.predicates
        if each.is_ordered
    ]
    assert ordered == []
