"""Dead memory cgroups: the walk is the cause, the count is not."""

from tests.drawn_node import DrawnNode, drawn_node

from necroscope.analysis.engine import diagnose

WALK = """
    core 0:  ..............................
    core 1:  ...............kkkkkk.........
    k: system  kubelet[1872]  /system.slice/kubelet.service  Read > ksys_read, vfs_read, memcg_stat_show, mem_cgroup_iter
"""


def walked() -> DrawnNode:
    return drawn_node(WALK)


def test_the_walk_over_many_dead_cgroups_is_named_with_its_reader() -> None:
    (incident,) = diagnose(walked().zombies(14, 68_680)).incidents
    assert (incident.core, incident.mode, incident.verdict.cause) == (1, "system", "zombie-memcg-walk")
    assert incident.verdict.confidence >= 0.8
    assert incident.verdict.culprit is not None
    assert (incident.verdict.culprit.comm, incident.verdict.culprit.unit) == ("kubelet", "kubelet.service")
    assert incident.verdict.culprit.path[-1] == "mem_cgroup_iter"


def test_a_count_without_the_walk_is_no_incident() -> None:
    assert not diagnose(drawn_node("core 0: ..............................").zombies(14, 68_680)).incidents


def test_the_walk_without_dead_cgroups_is_not_named() -> None:
    (incident,) = diagnose(walked().zombies(14, 30)).incidents
    assert incident.verdict.cause == "unknown"
    assert ("zombie-memcg-walk", "only 30 memory cgroups are dead") in [(a.cause, a.why_not) for a in incident.alternatives]


def test_the_unit_that_leaks_is_the_origin() -> None:
    node = walked().zombies(1, 68_600).zombies(14, 68_680)
    for number in range(10):
        path = f"/system.slice/agent{number}.service/run"
        node.add("cgroup_ledger", number, action="made", cgroup_id=number, path=path)
        node.add("cgroup_ledger", number + 0.5, action="removed", cgroup_id=number, path="/system.slice/agent.service")
    (incident,) = diagnose(node).incidents
    assert incident.verdict.origin is not None
    assert (incident.verdict.origin.kind, incident.verdict.origin.name) == ("unit", "agent.service")
    assert "agent.service" in incident.verdict.fix[0]
