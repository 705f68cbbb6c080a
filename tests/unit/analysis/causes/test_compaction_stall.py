"""Compaction: who asked for contiguous memory, and the fault that is only a fault."""

from tests.drawn_node import NS, DrawnNode, drawn_node

from necroscope.analysis.engine import diagnose

BY_REQUEST = """
    core 0:  ..............................
    core 1:  ...............cccccc.........
    c: system  defrag[500]  /system.slice/defrag.service  write > sysctl_compaction_handler, compact_node, compact_zone
"""
HUGE = BY_REQUEST.replace(
    "write > sysctl_compaction_handler, compact_node,",
    "memset > exc_page_fault, do_huge_pmd_anonymous_page,",
)


def counted(picture: str, pages: int) -> DrawnNode:
    node = drawn_node(picture).every_second(
        "memory", range(1, 16), compact_migrate_scanned=0, compact_free_scanned=0, pgfault=100
    )
    return node.every_second(
        "memory",
        range(16, 22),
        compact_migrate_scanned=pages,
        compact_free_scanned=pages,
        pgfault=50_000,
    )


def test_a_job_that_compacts_is_named_and_told_to_stop() -> None:
    (incident,) = diagnose(counted(BY_REQUEST, 800_000)).incidents
    assert (incident.core, incident.verdict.cause) == (1, "compaction-stall")
    assert incident.verdict.culprit is not None
    assert incident.verdict.culprit.unit == "defrag.service"
    assert "compact_memory" in incident.verdict.fix[0]


def test_a_fault_that_compacts_is_compaction_not_a_fault_storm() -> None:
    (incident,) = diagnose(counted(HUGE, 800_000)).incidents
    assert incident.verdict.cause == "compaction-stall"
    assert "defrag" in incident.verdict.fix[0]


def test_without_pages_scanned_it_is_not_named() -> None:
    (incident,) = diagnose(counted(BY_REQUEST, 0)).incidents
    assert incident.verdict.cause == "unknown"


BEHIND = """
    core 0:  ..............................
    core 1:  ...............xxxxxxxx.......
    x: system+idle  kcompactd0[45]  /  > kthread, kcompactd, kcompactd_do_work, compact_zone, isolate_migratepages_block
"""


def behind(picture: str = BEHIND, stalls: int = 0) -> DrawnNode:
    scanned = {"compact_migrate_scanned": 400_000, "compact_free_scanned": 100_000}
    return drawn_node(picture).every_second(
        "memory", range(16, 24), compact_stall=stalls, **scanned
    )


def test_compaction_in_the_background_that_nobody_waits_for_is_no_incident() -> None:
    assert not diagnose(behind()).incidents


def test_compaction_in_the_background_that_holds_a_core_is_reported_and_not_named_where_nobody_waits() -> (
    None
):
    (incident,) = diagnose(behind(BEHIND.replace("system+idle", "system"))).incidents
    assert incident.verdict.cause == "unknown"
    assert "kcompactd0" in incident.verdict.summary


def test_allocations_that_wait_for_compaction_in_the_background_confirm_it() -> None:
    (incident,) = diagnose(behind(stalls=40)).incidents
    assert incident.verdict.cause == "compaction-stall"
    assert "compaction_proactiveness" in incident.verdict.fix[0]


def test_softirqs_that_wait_behind_compaction_confirm_it() -> None:
    node = behind()
    for second in range(16, 24):
        node.delay(second, 1, 0.3)
    (incident,) = diagnose(node).incidents
    assert incident.verdict.cause == "compaction-stall"


def pressed(node: DrawnNode, level: float) -> DrawnNode:
    for second in range(1, 30):
        node.add(
            "pressure",
            second,
            resource="memory",
            some_ns=round(level * NS) if 16 <= second < 24 else 0,
            full_ns=0,
        )
    return node


def test_the_pressure_that_kcompactd_itself_makes_is_nobodys() -> None:
    turns = BEHIND.replace("system+idle", "system").replace("xxxxxxxx", "x.x.x.x.")
    assert "compaction-stall" not in {
        one.verdict.cause for one in diagnose(pressed(behind(turns), 0.5)).incidents
    }
    assert "compaction-stall" in {
        one.verdict.cause for one in diagnose(pressed(behind(turns), 0.9)).incidents
    }
