"""The kernel's own reclaim thread, and who takes what it frees."""

from tests.drawn_node import DrawnNode, drawn_node

from necroscope.analysis.engine import diagnose

KSWAPD = """
    core 0:  ...............ssssssss.......
    core 1:  ...............uuuuuuuu.......
    s: system  kswapd0[60]  /  > ret_from_fork, kthread, kswapd, balance_pgdat, shrink_node, shrink_lruvec
    u: user+system  indexer[900]  /pods/c  main > do_fault, filemap_fault, filemap_add_folio
"""


def scanned(pages: int) -> DrawnNode:
    node = drawn_node(KSWAPD).every_second("memory", range(1, 16), pgscan_kswapd=0, pgsteal_kswapd=0)
    return node.every_second("memory", range(16, 24), pgscan_kswapd=pages, pgsteal_kswapd=pages // 10)


def test_kswapd_is_the_culprit_and_who_fills_memory_the_origin() -> None:
    incident = next(one for one in diagnose(scanned(90_000)).incidents if one.core == 0)
    assert incident.verdict.cause == "kswapd-reclaim"
    assert incident.verdict.culprit is not None
    assert incident.verdict.culprit.comm == "kswapd0"
    assert incident.verdict.origin is not None
    assert incident.verdict.origin.name == "/pods/c"


def test_without_pages_scanned_it_is_not_named() -> None:
    causes = {incident.verdict.cause for incident in diagnose(scanned(0)).incidents}
    assert "kswapd-reclaim" not in causes
