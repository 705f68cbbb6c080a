"""Who is blamed, and who only was there."""

from tests.drawn_node import DrawnNode, drawn_node

from necroscope.analysis.engine import diagnose
from necroscope.analysis.report import Culprit

ID = "0a1b" * 16


def culprit_of(node: DrawnNode) -> Culprit:
    (incident,) = diagnose(node).incidents
    assert incident.verdict.culprit is not None
    return incident.verdict.culprit


def held_by(cgroup: str) -> DrawnNode:
    return drawn_node(f"core 0: ...........\ncore 1: ....kkkkk..\nk: system  worker[8]  {cgroup}  main > odd_loop")


def test_a_task_that_was_interrupted_is_not_blamed_for_the_interrupts() -> None:
    node = drawn_node(
        """
        core 0:  ....................
        core 1:  ........xxxxxx......
        x: system  victim[2]  /  main > asm_common_interrupt, handle_softirqs, net_rx_action
        x: system  tool[4]  /  main > ksys_ioctl, odd_loop
        x: system  tool[4]  /  main > ksys_ioctl, odd_loop
        x: system  victim[2]  /  main > asm_common_interrupt, handle_softirqs, net_rx_action
        x: system  victim[2]  /  main > asm_common_interrupt, common_interrupt, handle_irq_event
        """
    )
    assert culprit_of(node).comm == "tool"


def test_the_unit_is_told_from_the_cgroup() -> None:
    assert culprit_of(held_by("/system.slice/agent.service")).unit == "agent.service"


def test_the_container_is_told_from_the_cgroup_and_by_its_name_where_that_is_known() -> None:
    node = held_by(f"/kubepods/burstable/pod1/{ID}")
    assert culprit_of(node).container == ID[:12]
    assert culprit_of(node.add("containers", 1, container=ID, name="sidecar")).container == "sidecar"


def test_many_short_processes_of_one_name_are_one_culprit_without_a_pid() -> None:
    lines = "\n".join(f"k: system  runc[{pid}]  /jobs  main > copy_process" for pid in range(100, 120))
    found = culprit_of(drawn_node(f"core 0: ...........\ncore 1: ....kkkkk..\n{lines}"))
    assert (found.comm, found.pid) == ("runc", None)
