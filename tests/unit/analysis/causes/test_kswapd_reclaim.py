"""The kernel's own reclaim thread, and who takes what it frees."""

from tests.drawn_node import NS, DrawnNode, drawn_node

from necroscope.analysis.engine import diagnose

KSWAPD = """
    core 0:  ...............ssssssss.......
    core 1:  ...............uuuuuuuu.......
    s: system  kswapd0[60]  /  > ret_from_fork, kthread, kswapd, balance_pgdat, shrink_node, shrink_lruvec
    u: user+system  indexer[900]  /pods/c  main > do_fault, filemap_fault, filemap_add_folio
"""


def scanned(pages: int, freed: float = 0.1, picture: str = KSWAPD, **others: int) -> DrawnNode:
    node = drawn_node(picture).every_second(
        "memory", range(1, 16), pgscan_kswapd=0, pgsteal_kswapd=0
    )
    return node.every_second(
        "memory", range(16, 24), pgscan_kswapd=pages, pgsteal_kswapd=round(freed * pages), **others
    )


def causes_of(node: DrawnNode) -> set[str]:
    return {incident.verdict.cause for incident in diagnose(node).incidents}


def test_kswapd_is_the_culprit_and_who_fills_memory_the_origin() -> None:
    incident = next(one for one in diagnose(scanned(90_000)).incidents if one.core == 0)
    assert incident.verdict.cause == "kswapd-reclaim"
    assert incident.verdict.culprit is not None
    assert incident.verdict.culprit.comm == "kswapd0"
    assert incident.verdict.origin is not None
    assert incident.verdict.origin.name == "/pods/c"


def test_without_pages_scanned_it_is_not_named() -> None:
    assert "kswapd-reclaim" not in causes_of(scanned(0))


READ_ONCE = KSWAPD.replace("s: system ", "s: system+idle ").replace(
    "u: user+system ", "u: user+idle "
)


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


def test_a_file_that_is_read_once_makes_kswapd_work_and_hurts_nobody() -> None:
    node = pressed(
        scanned(90_000, freed=0.99, picture=READ_ONCE, workingset_refault=0, allocstall=0), 0.0
    )
    assert not diagnose(node).incidents


def test_the_pressure_that_kswapd_itself_makes_is_nobodys() -> None:
    held = pressed(scanned(90_000, freed=0.99, workingset_refault=0, allocstall=0), 0.97)
    assert "kswapd-reclaim" not in causes_of(held)


def test_pages_that_come_back_are_reclaimed_in_vain() -> None:
    assert "kswapd-reclaim" in causes_of(
        scanned(90_000, freed=0.9, picture=READ_ONCE, workingset_refault=30_000)
    )


def test_allocations_that_wait_besides_tell_it_too() -> None:
    assert "kswapd-reclaim" in causes_of(
        scanned(90_000, freed=0.9, workingset_refault=0, allocstall=40)
    )


def test_tasks_that_stall_while_kswapd_is_at_rest_tell_it_too() -> None:
    turns = KSWAPD.replace("ssssssss", "s.s.s.s.")
    assert "kswapd-reclaim" in causes_of(
        pressed(scanned(90_000, freed=0.9, picture=turns, workingset_refault=0), 0.9)
    )
