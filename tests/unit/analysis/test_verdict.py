"""How causes are ranked."""

from tests.drawn_node import at, drawn_node

from necroscope.analysis.case import Case, case_of
from necroscope.analysis.cause import Assessment, Cause
from necroscope.analysis.clusters import gather
from necroscope.analysis.detect import detect
from necroscope.analysis.node import Node
from necroscope.analysis.quality import Shortcoming
from necroscope.analysis.report import UNKNOWN, Alternative, Verdict
from necroscope.analysis.verdict import NAMED, confidence, decide, weigh


def a_case() -> Case:
    drawn = drawn_node(
        "core 0: ....................\ncore 1: .....xxxxxx.........\nx: system  tool[4]  /  main"
        " > odd"
    )
    node = Node(drawn, (at(0), at(20)))
    node.episodes = detect(node)
    (cluster,) = gather(node.episodes, [], node.columns("interrupts"))
    return case_of(node, cluster)


def cause(slug: str, found: Assessment | None, yields_to: frozenset[str] = frozenset()) -> Cause:
    return Cause(
        slug,
        slug,
        f"the sign of {slug}",
        lambda _: found,
        ("fix",),
        ("verify",),
        yields_to=yields_to,
    )


def decided(
    *causes: Cause, lacks: tuple[Shortcoming, ...] = ()
) -> tuple[Verdict, tuple[Alternative, ...]]:
    case, unknown = a_case(), cause(UNKNOWN, Assessment(0.0, False))
    found = [weigh(case, one, one.limits, lacks) for one in causes]
    return decide(case, [one for one in found if one is not None], unknown, lacks)


def test_a_cause_without_its_confirming_signal_is_never_named() -> None:
    verdict, (alternative,) = decided(cause("a", Assessment(1.0, is_confirmed=False)))
    assert verdict.cause == UNKNOWN
    assert alternative.why_not == "not confirmed; what would confirm it: the sign of a"
    assert confidence(Assessment(1.0, is_confirmed=False)) < NAMED


def test_the_cause_that_explains_more_wins_and_the_other_says_why_not() -> None:
    verdict, (other,) = decided(
        cause("a", Assessment(0.2, True)), cause("b", Assessment(0.9, True))
    )
    assert verdict.cause == "b"
    assert verdict.confidence >= 0.9
    assert other.why_not == "it explains 20% of the incident, b explains 90%"


def test_a_general_cause_yields_to_the_one_that_says_it_more_exactly() -> None:
    verdict, (other,) = decided(
        cause("a", Assessment(1.0, True), frozenset({"b"})), cause("b", Assessment(0.6, True))
    )
    assert verdict.cause == "b"
    assert other.why_not == "b explains it more precisely"


def test_a_general_cause_does_not_yield_to_what_is_not_confirmed() -> None:
    verdict, _ = decided(
        cause("a", Assessment(1.0, True), frozenset({"*"})), cause("b", Assessment(0.9, False))
    )
    assert verdict.cause == "a"


def test_two_causes_that_explain_it_as_well_lower_the_confidence() -> None:
    alone, _ = decided(cause("a", Assessment(0.9, True)))
    beside, _ = decided(cause("a", Assessment(0.9, True)), cause("b", Assessment(0.9, True)))
    assert beside.confidence < alone.confidence


def test_doubt_and_a_poor_recording_lower_the_confidence() -> None:
    assert confidence(Assessment(0.9, True, doubt=0.5)) < NAMED
    verdict, _ = decided(
        cause("a", Assessment(0.9, True)), lacks=(Shortcoming("no baseline", factor=0.5),)
    )
    assert verdict.cause == UNKNOWN
    assert [item.text for item in verdict.against] == ["no baseline"]
