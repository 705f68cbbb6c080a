"""Waits for locks: what the lock is of, and who has it."""

from tests.drawn_node import DrawnNode, at, drawn_node

from necroscope.analysis.case import Case, case_of
from necroscope.analysis.clusters import gather
from necroscope.analysis.detect import detect
from necroscope.analysis.node import Node
from necroscope.analysis.waits import lock_wait


def a_case(drawn: DrawnNode) -> Case:
    node = Node(drawn, (at(0), at(30)))
    node.episodes = detect(node)
    return case_of(node, gather(node.episodes, [], node.columns("interrupts"))[0])


def test_the_caller_of_the_slow_path_and_the_holder_are_named() -> None:
    case = a_case(
        drawn_node("""
            core 0:  ..........hhhhhhhh............
            core 1:  .........wwwwwwwww............
            w: system  victim[2]  /  main > ksys_read, list_lru_add, _raw_spin_lock, native_queued_spin_lock_slowpath
            h: system  holder[1]  /  main > ksys_unlink, list_lru_add, long_loop
            """)
    )
    wait = lock_wait(case)
    assert wait is not None
    assert wait.wanted_for == "list_lru_add"
    assert wait.holders[0].comm == "holder"


def test_without_a_wait_there_is_none() -> None:
    assert (
        lock_wait(
            a_case(
                drawn_node("core 0: ........\ncore 1: ..kkkk..\nk: system  a[1]  /  main > walk")
            )
        )
        is None
    )
