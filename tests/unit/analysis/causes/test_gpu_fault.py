"""An error of a GPU, whose fault its number says, with the state of its node."""

import json

from tests.drawn_node import DrawnNode, drawn_node

from necroscope.analysis.engine import diagnose

QUIET = "core 0: " + "." * 60 + "\ncore 1: " + "." * 60
HELD = """
    core 0:  ..............................
    core 1:  .............kkkkkkk..........
    k: system  reader[8]  /  main > ksys_read, some_walk
    """


def xid(node: DrawnNode, number: int) -> DrawnNode:
    message = f"NVRM: Xid (PCI:0000:3b:00): {number}, pid=4242, name=python, Timeout"
    return node.event(
        20,
        "gpu_xid",
        message,
        device="0000:3b:00",
        pid=4242,
        comm="python",
        fields=json.dumps({"xid": number}),
    )


def test_a_page_fault_is_the_programs() -> None:
    [incident] = diagnose(xid(drawn_node(QUIET), 31)).incidents
    verdict = incident.verdict
    assert verdict.cause == "gpu-fault"
    assert verdict.culprit is not None
    assert (verdict.culprit.comm, verdict.culprit.pid) == ("python", 4242)


def test_a_card_that_fell_off_the_bus_is_not_the_programs() -> None:
    [incident] = diagnose(xid(drawn_node(QUIET), 79)).incidents
    assert incident.verdict.culprit is not None
    assert incident.verdict.culprit.comm is None
    assert "fallen off the bus" in incident.verdict.summary


def test_the_nodes_state_is_reported_and_no_core_is_accused() -> None:
    node = xid(drawn_node(HELD), 119).add("memory", 19, available_bytes=5 << 30)
    gpu = next(one for one in diagnose(node).incidents if one.verdict.cause == "gpu-fault")
    texts = " | ".join(item.text for item in gpu.verdict.evidence)
    assert gpu.core is None
    assert "core 1" in texts, "a core that was held meanwhile is told"
    assert "5 GiB of memory were available" in texts


def test_a_number_that_is_not_known_blames_nobody() -> None:
    [incident] = diagnose(xid(drawn_node(QUIET), 9999)).incidents
    assert "not known here" in incident.verdict.summary
    assert incident.verdict.culprit is not None
    assert incident.verdict.culprit.comm is None
