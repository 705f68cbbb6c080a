"""Flushes that are sent to other cores, told from faults by the interrupts they are."""

from tests.drawn_node import DrawnNode, drawn_node

from necroscope.analysis.engine import diagnose

FLIPS = """
    core 0:  ...............uuuuuuuu.......
    core 1:  ...............mmmmmmmm.......
    u: user  engine[400]  /pods/e  compute
    m: system  engine[400]  /pods/e  mprotect > do_mprotect_pkey, flush_tlb_mm_range, smp_call_function_many_cond
"""


def interrupted(count: int, usual: int = 20, picture: str = FLIPS) -> DrawnNode:
    node = drawn_node(picture)
    for second, number in ((10, usual), (20, count), (30, count)):
        node.add(
            "interrupts",
            second,
            cpu=0,
            irq="TLB",
            action="TLB shootdowns",
            count=number * 10,
            elapsed_ns=10_000_000_000,
        )
    return node


def test_the_sender_is_named_with_the_interrupts_it_sends() -> None:
    incident = next(one for one in diagnose(interrupted(30_000)).incidents if one.core == 1)
    assert incident.verdict.cause == "tlb-shootdown"
    assert incident.verdict.culprit is not None
    assert incident.verdict.culprit.comm == "engine"
    assert any("shootdowns per second" in item.text for item in incident.verdict.evidence)


def test_flushes_that_interrupt_nobody_are_not_named() -> None:
    causes = [one.verdict.cause for one in diagnose(interrupted(20)).incidents]
    assert "tlb-shootdown" not in causes


def test_the_flushes_of_one_core_are_counted_beside_the_usual_ones_of_many() -> None:
    incident = next(
        one for one in diagnose(interrupted(100_000, usual=40_000)).incidents if one.core == 1
    )
    assert incident.verdict.cause == "tlb-shootdown"
    causes = [one.verdict.cause for one in diagnose(interrupted(45_000, usual=40_000)).incidents]
    assert "tlb-shootdown" not in causes


def test_the_flushes_of_a_thread_that_merges_pages_are_part_of_that_work() -> None:
    merges = FLIPS.replace(
        "engine[400]  /pods/e  mprotect > do_mprotect_pkey,",
        "ksmd[36]  /  > kthread, ksm_scan_thread, try_to_merge_one_page,",
    )
    found = diagnose(interrupted(30_000, picture=merges)).incidents
    verdict = next(one.verdict for one in found if one.core == 1)
    assert verdict.cause == "unknown"
    assert "by ksmd" in verdict.summary
    assert verdict.origin is not None
    assert (verdict.origin.kind, verdict.origin.name) == ("setting", "/sys/kernel/mm/ksm")
