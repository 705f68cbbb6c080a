"""A kernel that ended: its own words name the reason, and without them only the end is known."""

import json

from tests.drawn_node import DrawnNode, drawn_node

from necroscope.analysis.engine import diagnose

HELD_TO_THE_END = """
    core 0:  .........................
    core 1:  ............kkkkkkkkkkkkk
    k: system  reader[8]  /  main > ksys_read, some_walk
    """
QUIET = "core 0: " + "." * 25 + "\ncore 1: " + "." * 25


def ended(node: DrawnNode, message: str = "the boot before this one ended: no words") -> DrawnNode:
    return node.event(25, "boot_ended", message, by_kernel=False, pattern=None)


def panicked(node: DrawnNode, reason: str) -> DrawnNode:
    node.event(
        25,
        "kernel_panic",
        f"Kernel panic - not syncing: {reason}",
        fields=json.dumps({"reason": reason}),
    )
    return ended(node, f"the boot before this one ended: Kernel panic: {reason} (pstore)")


def of_the_end(node: DrawnNode):
    return [one for one in diagnose(node).incidents if one.core is None]


def test_a_panic_is_named_with_its_reason_as_one_incident() -> None:
    [incident] = of_the_end(panicked(drawn_node(QUIET), "Fatal exception in interrupt"))
    assert incident.verdict.cause == "boot-ended"
    assert "Fatal exception in interrupt" in incident.verdict.summary
    assert incident.verdict.culprit is None or incident.verdict.culprit.comm is None


def test_what_held_a_core_in_the_last_seconds_is_evidence() -> None:
    [incident] = of_the_end(panicked(drawn_node(HELD_TO_THE_END), "softlockup: hung tasks"))
    assert any("core 1" in item.text for item in incident.verdict.evidence)
    assert any("named" in text or "for what held" in text for text in incident.verdict.fix)


def test_without_words_the_cause_is_not_claimed() -> None:
    [incident] = of_the_end(ended(drawn_node(QUIET)))
    assert incident.verdict.cause == "unknown"
    assert "ended" in incident.verdict.summary or any(
        "ended" in item.text for item in incident.verdict.evidence
    )
