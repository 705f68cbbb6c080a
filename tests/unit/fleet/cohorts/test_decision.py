"""Which difference is named, which only seems to matter, and when the answer is that nobody can
tell.
"""

import numpy as np
import pytest
from benchmarks.generated_truth import UNIT, generated_truth

from necroscope.fleet.cohorts.columns import FactMatrix, matrix_of
from necroscope.fleet.cohorts.decision import Decision, Doubt, Relation, Separation, decide


def named(decision: Decision) -> tuple[str, str]:
    first = decision.first
    assert first is not None
    predicate = first.candidate.predicates[0]
    return predicate.kind, predicate.name


def drawn(affected: str, **columns: str) -> tuple[FactMatrix, np.ndarray]:
    """A column a fact, a sign a node: `label__zone="aab"`."""
    found = {
        tuple(name.split("__", 1)): [None if sign == "-" else sign for sign in text]
        for name, text in columns.items()
    }
    nodes = [f"n{number}" for number in range(len(affected))]
    return matrix_of(nodes, found), np.array([sign == "x" for sign in affected])  # type: ignore[arg-type]


#          zone a                 zone b                 zone c
AFFECTED = "xxxxxxxxx......" + "xxx............" + "..............."
ZONE = "aaaaaaaaaaaaaaa" + "bbbbbbbbbbbbbbb" + "ccccccccccccccc"
UNIT_ON = "yyyyyyyyyy....." + "yyyy..........." + "..............."


def test_the_unit_is_named_and_the_zone_is_only_a_proxy() -> None:
    decision = decide(*drawn(AFFECTED, label__zone=ZONE, unit_outcome__agent=UNIT_ON))
    assert decision.outcome is Separation.SEPARATED
    assert named(decision) == ("unit_outcome", "agent")
    zone = next(each for each in decision.leaders if each.candidate.places)
    assert zone.relation is Relation.PROXY
    assert zone.first_only.affected == ("n15", "n16", "n17")
    assert zone.this_only.well == ("n10", "n11", "n12", "n13", "n14")
    # Within zone a and elsewhere, the unit's own 2x2 tables.
    assert (zone.where_it_is.affected_with, zone.where_it_is.affected_without) == (9, 0)
    assert (zone.elsewhere.affected_with, zone.elsewhere.affected_without) == (3, 0)


def test_a_fact_that_is_the_zone_by_another_name_cannot_be_separated() -> None:
    same = ZONE.replace("b", "c").replace("c", "n").replace("a", "y")
    decision = decide(
        *drawn(
            "xxxxxxxxx......" + "." * 30,
            label__zone=ZONE,
            unit_outcome__agent=same,
            package__mirror=same,
        )
    )
    assert decision.doubt is Doubt.PLACE
    assert decision.first is not None
    assert len(decision.first.candidate.facts) == 2


def test_a_place_alone_is_never_named() -> None:
    decision = decide(
        *drawn("xxxxxxxxxxxx..." + "." * 30, label__zone=ZONE, sysctl__noise="12" * 22 + "1")
    )
    assert decision.outcome is Separation.CANNOT_SEPARATE
    assert decision.first is None or decision.first.candidate.facts


def test_facts_that_differ_on_one_node_cannot_be_separated() -> None:
    almost = "y" * 9 + "." + UNIT_ON[10:]
    decision = decide(
        *drawn(AFFECTED, label__zone=ZONE, unit_outcome__agent=UNIT_ON, package__driver=almost)
    )
    assert decision.doubt is Doubt.RIVALS
    assert {"n9"} == {
        name
        for each in decision.leaders
        if each.relation is Relation.INSEPARABLE
        for name in each.first_only.well + each.this_only.well
    }


def test_identical_and_complementary_facts_are_one_difference() -> None:
    opposite = UNIT_ON.replace("y", "-").replace(".", "n")
    decision = decide(
        *drawn(AFFECTED, label__zone=ZONE, unit_outcome__agent=UNIT_ON, package__other=opposite)
    )
    assert decision.outcome is Separation.SEPARATED
    assert decision.first is not None
    assert [str(each) for each in decision.first.candidate.predicates] == [
        "unit_outcome agent is y",
        "package other is not there",
    ]


def test_all_that_is_known_of_one_unit_is_no_rival_to_itself() -> None:
    enabled = "y" * 10 + "y" + UNIT_ON[11:]
    decision = decide(
        *drawn(AFFECTED, label__zone=ZONE, unit_outcome__agent=UNIT_ON, unit_file__agent=enabled)
    )
    assert decision.outcome is Separation.SEPARATED


def test_a_rival_that_shares_one_of_its_names_with_the_first_is_reported() -> None:
    """`agent is not n` holds on the nodes where the step succeeded: that is still about the
    step.
    """
    agent = UNIT_ON.replace(".", "n")[:10] + "mm" + UNIT_ON.replace(".", "n")[12:]
    step = agent.replace("y", "s").replace("m", "s").replace("n", "f")
    decision = decide(
        *drawn(AFFECTED, label__zone=ZONE, unit_outcome__agent=agent, unit_outcome__step=step)
    )
    assert named(decision) == ("unit_outcome", "agent")
    rival = next(each for each in decision.leaders[1:] if "step" in each.name)
    assert rival.relation is not Relation.SAME_SUBJECT


def test_what_failures_leave_behind_and_names_of_nodes_are_left_out() -> None:
    marks = AFFECTED.replace("x", "1").replace(".", "0")
    decision = decide(
        *drawn(
            AFFECTED,
            label__zone=ZONE,
            unit_outcome__agent=UNIT_ON,
            nic__tx_timeouts=marks,
            node__booted=marks,
        )
    )
    assert named(decision) == ("unit_outcome", "agent")
    assert sum(decision.left_out.values()) == 2


def test_three_affected_nodes_of_many_facts_are_chance() -> None:
    rng = np.random.default_rng(3)
    matrix = matrix_of(
        [f"n{number}" for number in range(60)],
        {
            ("sysctl", f"s{fact}"): [str(each) for each in rng.integers(0, 2, 60)]
            for fact in range(300)
        },
    )
    affected = np.zeros(60, bool)
    affected[:3] = True
    assert decide(matrix, affected).doubt is Doubt.CHANCE


@pytest.mark.parametrize(
    ("signs", "doubt"), [("......", Doubt.NOBODY), ("xxxxxx", Doubt.EVERYBODY)]
)
def test_nobody_and_everybody_affected_leave_nothing_to_compare(signs: str, doubt: Doubt) -> None:
    assert decide(*drawn(signs, label__zone="aabbcc")).doubt is doubt


def test_on_generated_truth_the_right_fact_comes_first_and_no_place_is_named() -> None:
    """A few of the runs that `scripts/bench fleet` makes."""
    rng = np.random.default_rng(11)
    decisions = [decide(*generated_truth(rng, noise=100)) for _ in range(40)]
    assert sum(named(each) == UNIT for each in decisions) >= 34
    assert not [each for each in decisions if each.doubt is None and named(each) != UNIT]
    assert not [
        each
        for each in decisions
        if each.doubt is None and each.first is not None and each.first.candidate.places
    ]


def test_with_no_node_that_disagrees_the_answer_is_always_cannot_separate() -> None:
    rng = np.random.default_rng(12)
    outcomes = {decide(*generated_truth(rng, disagree=0, noise=50)).outcome for _ in range(60)}
    assert outcomes == {Separation.CANNOT_SEPARATE}
