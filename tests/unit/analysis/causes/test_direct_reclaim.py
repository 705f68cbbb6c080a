"""Who allocates reclaims: told from kswapd by who it is, from a limit by where it is called."""

from tests.drawn_node import DrawnNode, drawn_node

from necroscope.analysis.engine import diagnose

DIRECT = """
    core 0:  ...............ffffffff.......
    core 1:  ..............................
    f: system  ranker[800]  /pods/b  memset > exc_page_fault, handle_mm_fault, __alloc_pages_slowpath, try_to_free_pages
"""


def counted(picture: str, stalls: int) -> DrawnNode:
    node = drawn_node(picture).every_second(
        "memory", range(1, 16), allocstall=0, pgscan_direct=0, pgscan_kswapd=0
    )
    scans = {
        "pgscan_direct": 100 * stalls,
        "pgscan_kswapd": 50 * stalls,
        "pgsteal_kswapd": 5 * stalls,
    }
    return node.every_second("memory", range(16, 24), allocstall=stalls, **scans)


def test_reclaim_by_the_task_itself_is_named() -> None:
    (incident,) = diagnose(counted(DIRECT, 400)).incidents
    assert (incident.core, incident.verdict.cause) == (0, "direct-reclaim")
    assert incident.verdict.culprit is not None
    assert incident.verdict.culprit.comm == "ranker"


def test_without_a_stalled_allocation_it_is_not_named() -> None:
    (incident,) = diagnose(counted(DIRECT, 0)).incidents
    assert incident.verdict.cause == "unknown"
    assert incident.alternatives[0].cause == "direct-reclaim"


def test_kswapd_at_work_is_not_direct_reclaim() -> None:
    picture = DIRECT.replace(
        "ranker[800]  /pods/b  memset > exc_page_fault, handle_mm_fault, __alloc_pages_slowpath,",
        "kswapd0[60]  /  > kswapd,",
    )
    (incident,) = diagnose(
        counted(picture.replace("try_to_free_pages", "balance_pgdat"), 400)
    ).incidents
    assert incident.verdict.cause == "kswapd-reclaim"
