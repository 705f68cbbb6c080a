"""Dead memory cgroups: the walk is the cause, the count is not."""

import pytest
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
    assert (incident.core, incident.mode, incident.verdict.cause) == (
        1,
        "system",
        "zombie-memcg-walk",
    )
    assert incident.verdict.confidence >= 0.8
    assert incident.verdict.culprit is not None
    assert (incident.verdict.culprit.comm, incident.verdict.culprit.unit) == (
        "kubelet",
        "kubelet.service",
    )
    assert incident.verdict.culprit.path[-1] == "mem_cgroup_iter"


def test_the_walk_has_its_numbers() -> None:
    (incident,) = diagnose(walked().zombies(1, 60_000).zombies(14, 68_680)).incidents
    walk = incident.verdict.walked
    assert walk is not None
    assert (walk.function, walk.population, walk.count) == (
        "memcg_stat_show",
        "dead-cgroups",
        68_680,
    )
    assert walk.per_object_ns is not None
    assert any("for each of 68,680 dead cgroups" in item.text for item in incident.verdict.evidence)


def test_a_count_without_the_walk_is_no_incident() -> None:
    assert not diagnose(
        drawn_node("core 0: ..............................").zombies(14, 68_680)
    ).incidents


def test_the_walk_without_dead_cgroups_is_not_named() -> None:
    (incident,) = diagnose(walked().zombies(14, 30)).incidents
    assert incident.verdict.cause == "unknown"
    assert ("zombie-memcg-walk", "only 30 memory cgroups are dead, 200 alive") in [
        (a.cause, a.why_not) for a in incident.alternatives
    ]


def test_the_unit_that_leaks_is_the_origin() -> None:
    node = walked().zombies(1, 68_600).zombies(14, 68_680)
    for number in range(10):
        path = f"/system.slice/agent{number}.service/run"
        node.add("cgroup_ledger", number, action="made", cgroup_id=number, path=path)
        node.add(
            "cgroup_ledger",
            number + 0.5,
            action="removed",
            cgroup_id=number,
            path="/system.slice/agent.service",
        )
    (incident,) = diagnose(node).incidents
    assert incident.verdict.origin is not None
    assert (incident.verdict.origin.kind, incident.verdict.origin.name) == ("unit", "agent.service")
    assert incident.verdict.fix[0].startswith("find what starts agent.service again and again")


def test_where_the_dead_were_not_counted_it_is_not_named() -> None:
    (incident,) = diagnose(walked()).incidents
    assert incident.verdict.cause == "unknown"


def test_more_alive_than_dead_are_a_walk_of_the_living() -> None:
    (incident,) = diagnose(walked().zombies(14, 1_500, live=9_000)).incidents
    assert incident.verdict.cause == "kernel-state-walk"
    assert incident.verdict.walked is not None
    assert incident.verdict.walked.population == "cgroups"


def test_nothing_is_said_of_one_system_call() -> None:
    (incident,) = diagnose(walked().zombies(14, 68_680)).incidents
    assert "one system call" not in incident.verdict.summary


def test_since_when_they_come_and_when_it_will_be_worse_is_reported() -> None:
    node = walked().zombies(4, 9_990).zombies(14, 10_000)
    evidence = diagnose(node).incidents[0].verdict.evidence
    (text,) = [item.text for item in evidence if item.table == "cgroups"]
    assert text.startswith(
        "10,000 memory cgroups are dead, 200 alive, 3,600 more per hour: at this rate the leak"
        " began 2 h 46 min ago and reaches 70,000 "
    )


def test_what_the_restarts_tell_is_not_said_of_the_ledger() -> None:
    node = walked().zombies(4, 9_990).zombies(14, 10_000)
    for second, restarts in ((4, 5), (14, 15)):
        node.add("units", second, unit="ecs.service", restarts=restarts)
    verdict = diagnose(node).incidents[0].verdict
    assert verdict.origin is not None
    assert verdict.origin.name == "ecs.service"
    assert [item.table for item in verdict.evidence if "restarted 10 times" in item.text] == [
        "units"
    ]
    assert verdict.fix[0].startswith("systemctl disable --now ecs.service")


def leaking(paths: list[str], restarting: str | None = None) -> DrawnNode:
    node = walked().zombies(2, 60_000).zombies(14, 60_010)
    for number, path in enumerate(paths):
        node.add(
            "cgroup_ledger", 3 + number, hierarchy=1, cgroup_id=number, action="made", path=path
        )
        node.add(
            "cgroup_ledger",
            3.5 + number,
            hierarchy=1,
            cgroup_id=number,
            action="removed",
            path=path,
        )
    if restarting:
        node.add("units", 4, unit=restarting, restarts=5).add(
            "units", 14, unit=restarting, restarts=13
        )
    return node


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("/system.slice/slurmstepd.scope/job_{}", "slurmstepd.scope"),
        ("/system.slice/containerd.service/task-{}", "containerd.service"),
        (
            "/user.slice/user-1000.slice/user@1000.service/app.slice/run-r{}.scope",
            "user@1000.service",
        ),
        ("/user.slice/user-0.slice/session-{}.scope", "/user.slice/user-0.slice"),
    ],
)
def test_a_unit_below_which_others_leak_is_not_to_be_stopped(folder: str, name: str) -> None:
    (incident,) = diagnose(
        leaking([folder.format(number) for number in range(10, 18)], restarting=name)
    ).incidents
    assert incident.verdict.cause == "zombie-memcg-walk"
    assert incident.verdict.fix[0].startswith(f"find what makes cgroups below {name}")
    assert not any("systemctl disable" in line for line in incident.verdict.fix)


def test_a_service_that_dies_and_comes_again_is_to_be_stopped() -> None:
    (incident,) = diagnose(
        leaking(8 * ["/system.slice/ecs.service"], restarting="ecs.service")
    ).incidents
    assert incident.verdict.fix[0].startswith("systemctl disable --now ecs.service")


def test_the_manager_of_a_user_is_not_to_be_stopped() -> None:
    path = "/user.slice/user-1000.slice/user@1000.service"
    (incident,) = diagnose(leaking(8 * [path], restarting="user@1000.service")).incidents
    assert incident.verdict.fix[0].startswith("find what starts user@1000.service again and again")


def test_a_unit_that_restarted_once_is_not_to_be_stopped_for_what_died_below_it() -> None:
    node = walked().zombies(2, 60_000).zombies(14, 60_010)
    node.add(
        "cgroups", 14, controller="memory", path="/system.slice/containerd.service", dying=60_000
    )
    node.add("units", 4, unit="containerd.service", restarts=0).add(
        "units", 14, unit="containerd.service", restarts=1
    )
    (incident,) = diagnose(node).incidents
    assert incident.verdict.fix[0].startswith("find what makes cgroups below containerd.service")
