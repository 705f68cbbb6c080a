"""Compaction: who asked for contiguous memory, and the fault that is only a fault."""

from tests.drawn_node import DrawnNode, drawn_node

from necroscope.analysis.engine import diagnose

ASKED = """
    core 0:  ..............................
    core 1:  ...............cccccc.........
    c: system  defrag[500]  /system.slice/defrag.service  write > sysctl_compaction_handler, compact_node, compact_zone
"""
HUGE = ASKED.replace("write > sysctl_compaction_handler, compact_node,", "memset > exc_page_fault, do_huge_pmd_anonymous_page,")


def counted(picture: str, pages: int) -> DrawnNode:
    node = drawn_node(picture).every_second(
        "memory", range(1, 16), compact_migrate_scanned=0, compact_free_scanned=0, pgfault=100
    )
    return node.every_second("memory", range(16, 22), compact_migrate_scanned=pages, compact_free_scanned=pages, pgfault=50_000)


def test_a_job_that_compacts_is_named_and_told_to_stop() -> None:
    (incident,) = diagnose(counted(ASKED, 800_000)).incidents
    assert (incident.core, incident.verdict.cause) == (1, "compaction-stall")
    assert incident.verdict.culprit is not None
    assert incident.verdict.culprit.unit == "defrag.service"
    assert "compact_memory" in incident.verdict.fix[0]


def test_a_fault_that_compacts_is_compaction_not_a_fault_storm() -> None:
    (incident,) = diagnose(counted(HUGE, 800_000)).incidents
    assert incident.verdict.cause == "compaction-stall"
    assert "defrag" in incident.verdict.fix[0]


def test_without_pages_scanned_it_is_not_named() -> None:
    (incident,) = diagnose(counted(ASKED, 0)).incidents
    assert incident.verdict.cause == "unknown"
