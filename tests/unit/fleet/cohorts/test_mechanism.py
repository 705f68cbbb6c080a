"""What the nodes' verdicts decide where counts cannot, and when they are not believed."""

import numpy as np
import pytest
from benchmarks.generated_truth import UNIT, generated_origins, generated_truth

from necroscope.fleet.cohorts.columns import FactMatrix, Flags, matrix_of
from necroscope.fleet.cohorts.decision import DecidedBy, Doubt, Relation, Separation, decide
from necroscope.fleet.cohorts.fact_rules import Predicate
from necroscope.fleet.cohorts.mechanism import Link, Origins, link_of

NODES = 45
UNIT_LINK: Link = ("unit", "agent.service")
CHAIN: list[Link] = [("container", "agent"), UNIT_LINK, ("image", "example/agent:1")]


def same_nodes() -> tuple[FactMatrix, Flags]:
    """Zone, unit, package and image are the same 15 nodes, 9 of which were affected."""
    in_a = [number < 15 for number in range(NODES)]
    columns = {
        ("label", "zone"): ["a" if each else "b" for each in in_a],
        ("unit_outcome", "agent.service"): [
            "crash-loop" if each else "never-started" for each in in_a
        ],
        ("image", "example/agent:1"): ["sha256:1" if each else None for each in in_a],
        ("package", "mirror"): ["1" if each else "2" for each in in_a],
        ("unit_outcome", "other.service"): ["failed" if each else "succeeded" for each in in_a],
    }
    return matrix_of([f"n{number}" for number in range(NODES)], columns), np.arange(NODES) < 9


def verdicts(nodes: range | list[int], chain: list[Link] = CHAIN) -> Origins:
    return Origins.of(NODES, dict.fromkeys(nodes, chain))


def test_the_unit_that_the_verdicts_name_is_reported_and_how_it_was_decided() -> None:
    decision = decide(*same_nodes(), verdicts(range(8)))
    assert decision.outcome is Separation.SEPARATED
    assert decision.decided_by is DecidedBy.MECHANISM
    assert decision.first is not None
    assert [str(each) for each in decision.first.candidate.predicates] == [
        "unit_outcome agent.service is crash-loop",
        "image example/agent:1 is sha256:1",
    ]
    assert decision.mechanism is not None
    assert (decision.mechanism.named, decision.mechanism.judged) == (8, 8)
    (other,) = decision.leaders[1:]
    assert other.relation is Relation.UNNAMED
    assert {each.name for each in other.candidate.facts} == {"mirror", "other.service"}


def test_without_verdicts_it_cannot_be_separated() -> None:
    for origins in (None, Origins.of(NODES, {})):
        assert decide(*same_nodes(), origins).doubt is Doubt.PLACE


@pytest.mark.parametrize(
    "origins",
    [
        verdicts(range(2)),
        verdicts(range(20, 29)),
        verdicts([*range(8), 20, 21]),
        Origins.of(NODES, {node: [("unit", f"unit-{node}.service")] for node in range(9)}),
        Origins.of(
            NODES, {node: CHAIN if node < 4 else [("process", "python")] for node in range(9)}
        ),
    ],
    ids=["two", "of well nodes", "also where it is not", "each another", "most another"],
)
def test_verdicts_that_are_few_or_do_not_agree_decide_nothing(origins: Origins) -> None:
    decision = decide(*same_nodes(), origins)
    assert (decision.doubt, decision.decided_by) == (Doubt.PLACE, None)


def test_a_place_is_not_named_whatever_the_verdicts_say() -> None:
    decision = decide(*same_nodes(), verdicts(range(9), [("zone", "a"), ("label", "zone")]))
    assert decision.outcome is Separation.CANNOT_SEPARATE


def test_counts_that_decide_are_not_overruled() -> None:
    matrix, affected = same_nodes()
    driver: list[str | None] = ["bad" if number < 9 else "good" for number in range(NODES)]
    columns = {
        fact: [matrix.values[pair] for pair in matrix.pair[place].tolist()]
        for place, fact in enumerate(matrix.facts)
    }
    wider = matrix_of(matrix.nodes, {**columns, ("module", "driver"): driver})
    decision = decide(wider, affected, verdicts(range(9)))
    assert decision.decided_by is DecidedBy.COUNTS
    assert decision.first is not None
    assert decision.first.candidate.name == "module driver is bad"
    assert decision.mechanism is None


def test_facts_are_linked_to_what_verdicts_name() -> None:
    links = {
        ("unit_file", "a.service"): ("unit", "a.service"),
        ("nic", "eth0 rings"): ("device", "eth0"),
        ("executable", "/usr/bin/kubelet"): ("process", "kubelet"),
        ("sysctl", "vm.swappiness"): ("setting", "vm.swappiness"),
        ("label", "zone"): None,
    }
    assert {fact: link_of(Predicate(*fact, "x")) for fact in links} == links


def test_generated_fleets_are_named_rightly_and_never_by_shuffled_verdicts() -> None:
    rng = np.random.default_rng(7)
    right = wrong = 0
    for _ in range(20):
        fleet = generated_truth(rng, disagree=0)
        decision = decide(*fleet, generated_origins(rng, *fleet))
        is_named = decision.outcome is Separation.SEPARATED
        is_right = decision.first is not None and {
            (each.kind, each.name) for each in decision.first.candidate.predicates
        } == {UNIT}
        right, wrong = right + (is_named and is_right), wrong + (is_named and not is_right)
        for shuffled in ("nodes", "names"):
            shaken = generated_origins(rng, *fleet, shuffled=shuffled)
            assert decide(*fleet, shaken).outcome is Separation.CANNOT_SEPARATE
    assert (right >= 16, wrong) == (True, 0)
