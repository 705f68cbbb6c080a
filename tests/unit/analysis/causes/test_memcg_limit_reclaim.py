"""Reclaim below a charge is a limit; the same walk for anything else is not."""

import pytest
from tests.drawn_node import NS, DrawnNode, drawn_node
from tests.drawn_waits import by, wait

from necroscope.analysis.engine import diagnose

LIMIT = """
    core 0:  ..............................
    core 1:  ...............llllllll.......
    l: system  loader[700]  /pods/a/main  Read > filemap_read, try_charge_memcg, try_to_free_mem_cgroup_pages, shrink_slab
"""
ASKED = LIMIT.replace(
    "filemap_read, try_charge_memcg", "kernfs_fop_write_iter, mem_cgroup_force_empty_write"
)


def limited() -> DrawnNode:
    return drawn_node(LIMIT).add(
        "cgroups", 24, controller="memory", path="/pods/a", memory_max_events=9_000
    )


def test_the_cgroup_whose_limit_was_hit_is_the_origin() -> None:
    (incident,) = diagnose(limited()).incidents
    assert (incident.core, incident.verdict.cause) == (1, "memcg-limit-reclaim")
    assert incident.verdict.confidence >= 0.8
    assert incident.verdict.culprit is not None
    assert incident.verdict.culprit.comm == "loader"
    assert incident.verdict.origin is not None
    assert (incident.verdict.origin.kind, incident.verdict.origin.name) == ("cgroup", "/pods/a")


def test_the_limit_of_another_is_not_the_culprits() -> None:
    """Of many cgroups the limits are read in turn, and it was not the culprit's."""
    node = drawn_node(LIMIT).add(
        "cgroups", 24, controller="memory", path="/pods/b", memory_max_events=9_000
    )
    node.every_second("pressure", range(1, 16), resource="memory", some_ns=0)
    node.every_second("pressure", range(16, 30), resource="memory", some_ns=NS // 2)
    (incident,) = diagnose(node).incidents
    assert incident.verdict.cause == "memcg-limit-reclaim"
    assert incident.verdict.origin is not None
    assert incident.verdict.origin.name == "/pods/a/main"
    assert (
        "/pods/b"
        not in f"{incident.verdict.summary} {incident.verdict.fix} {incident.verdict.evidence}"
    )


@pytest.mark.parametrize("cgroup", ["/", "/pods"])
def test_a_task_known_by_the_cgroup_it_was_moved_from_is_reported_with_the_limit_that_was_hit(
    cgroup: str,
) -> None:
    picture = LIMIT.replace("/pods/a/main", cgroup)
    node = drawn_node(picture).add(
        "cgroups", 24, controller="memory", path="/pods/a", memory_max_events=9_000
    )
    (incident,) = diagnose(node).incidents
    assert incident.verdict.origin is not None
    assert incident.verdict.origin.name == "/pods/a"


def test_reclaim_that_was_asked_for_is_no_limit() -> None:
    (incident,) = diagnose(drawn_node(ASKED)).incidents
    assert incident.verdict.cause == "unknown"


def test_a_walk_over_dead_cgroups_for_a_limit_is_the_limit() -> None:
    node = drawn_node(LIMIT.replace("shrink_slab", "shrink_node, mem_cgroup_iter")).zombies(
        14, 5_000
    )
    (incident,) = diagnose(node).incidents
    assert incident.verdict.cause == "memcg-limit-reclaim"


AT_ITS_LIMIT = """
    core 0:  ..............................
    core 1:  ...............xxxxxxxx.......
    x: system+idle  rsync[45]  /pods/b  write > vfs_write, mem_cgroup_charge, try_charge_memcg, try_to_free_mem_cgroup_pages
    x: system+idle  rsync[45]  /pods/b  write > vfs_write, generic_perform_write, copy_page_from_iter
    x: system+idle  rsync[45]  /pods/b  write > vfs_write, generic_perform_write, ext4_write_end
"""


def copied(stalled: float | None = None, hits: int | None = None) -> DrawnNode:
    node = drawn_node(AT_ITS_LIMIT)
    for second in range(1, 30) if stalled is not None else ():
        node.add(
            "pressure", second, resource="memory", some_ns=round((stalled or 0.0) * NS), full_ns=0
        )
    return (
        node
        if hits is None
        else node.add("cgroups", 24, controller="memory", path="/pods/b", memory_max_events=hits)
    )


def test_a_limit_that_was_not_hit_and_stalls_nobody_is_not_named() -> None:
    assert not diagnose(copied(stalled=0.0, hits=0)).incidents
    assert not diagnose(copied(stalled=0.01)).incidents
    assert not diagnose(copied(hits=0)).incidents


def test_hits_of_the_limit_or_stalls_for_memory_confirm_it() -> None:
    for node in (copied(stalled=0.0, hits=9_000), copied(stalled=0.3, hits=0)):
        (incident,) = diagnose(node).incidents
        assert incident.verdict.cause == "memcg-limit-reclaim"


def test_tasks_that_the_limit_killed_are_evidence() -> None:
    node = drawn_node(LIMIT).add(
        "cgroups", 24, controller="memory", path="/pods/a", memory_max_events=9_000, oom_kills=3
    )
    (incident,) = diagnose(node).incidents
    texts = [item.text for item in incident.verdict.evidence]
    assert "the limit of /pods/a killed 3 of its tasks (OOM)" in texts


IDLE = """
    core 0:  ..............................
    core 1:  ..............................
    """
OUT_OF_MEMORY = "mem_cgroup_oom_synchronize;pagefault_out_of_memory;exc_page_fault"
OVER_HIGH = "__mem_cgroup_handle_over_high;exit_to_user_mode_loop;do_syscall_64"
MAKES_ROOM = "autoremove_wake_function;__wake_up;mem_cgroup_resize_max;vfs_write;do_syscall_64"


def asleep_at_the_limit(lasts_s: float, stack: str = OUT_OF_MEMORY) -> DrawnNode:
    node = drawn_node(IDLE)
    for pid in (71, 72):
        ended = by("helper", 80, stack=MAKES_ROOM) if stack == OUT_OF_MEMORY else {}
        wait(node, 10, lasts_s, "webapp", pid, cgroup="/pods/a", stack=stack, **ended)
    return node


@pytest.mark.parametrize("stack", [OUT_OF_MEMORY, OVER_HIGH])
def test_tasks_that_the_limit_puts_to_sleep_are_at_it_and_who_makes_room_is_not_accused(
    stack: str,
) -> None:
    (incident,) = diagnose(asleep_at_the_limit(8.0, stack)).incidents
    verdict = incident.verdict
    assert (incident.core, verdict.cause) == (None, "memcg-limit-reclaim")
    assert verdict.culprit is not None
    assert verdict.culprit.comm == "webapp"
    assert verdict.origin is not None
    assert verdict.origin.name == "/pods/a"
    assert "helper" not in verdict.summary


def test_a_moment_at_the_limit_is_no_incident() -> None:
    assert not diagnose(asleep_at_the_limit(1.2)).incidents
