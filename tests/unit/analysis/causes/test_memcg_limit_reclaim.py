"""Reclaim below a charge is a limit; the same walk for anything else is not."""

from tests.drawn_node import DrawnNode, drawn_node

from necroscope.analysis.engine import diagnose

LIMIT = """
    core 0:  ..............................
    core 1:  ...............llllllll.......
    l: system  loader[700]  /pods/a/main  Read > filemap_read, try_charge_memcg, try_to_free_mem_cgroup_pages, shrink_slab
"""
ASKED = LIMIT.replace("filemap_read, try_charge_memcg", "kernfs_fop_write_iter, mem_cgroup_force_empty_write")


def limited() -> DrawnNode:
    return drawn_node(LIMIT).add("cgroups", 24, controller="memory", path="/pods/a", memory_max_events=9_000)


def test_the_cgroup_whose_limit_was_hit_is_the_origin() -> None:
    (incident,) = diagnose(limited()).incidents
    assert (incident.core, incident.verdict.cause) == (1, "memcg-limit-reclaim")
    assert incident.verdict.confidence >= 0.8
    assert incident.verdict.culprit is not None
    assert incident.verdict.culprit.comm == "loader"
    assert incident.verdict.origin is not None
    assert (incident.verdict.origin.kind, incident.verdict.origin.name) == ("cgroup", "/pods/a")


def test_reclaim_that_was_asked_for_is_no_limit() -> None:
    (incident,) = diagnose(drawn_node(ASKED)).incidents
    assert incident.verdict.cause == "unknown"


def test_a_walk_over_dead_cgroups_for_a_limit_is_the_limit() -> None:
    node = drawn_node(LIMIT.replace("shrink_slab", "shrink_node, mem_cgroup_iter")).zombies(14, 5_000)
    (incident,) = diagnose(node).incidents
    assert incident.verdict.cause == "memcg-limit-reclaim"
