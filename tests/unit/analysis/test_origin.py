"""Who leaves dead cgroups behind."""

from tests.drawn_node import DrawnNode, at, drawn_node

from necroscope.analysis.node import Node
from necroscope.analysis.origin import dead_cgroups, leaks, producer
from necroscope.analysis.report import Origin

ID = "677df4abd054d1c4bffe14cda0cbd6f464cd2a2b869262da8614e59d9d09697"


def node() -> DrawnNode:
    return drawn_node("core 0: " + "." * 60)


def loop(drawn: DrawnNode, paths: list[str], is_released: bool = False) -> DrawnNode:
    for number, path in enumerate(paths):
        drawn.add("cgroup_ledger", number, action="made", hierarchy=8, cgroup_id=100 + number, path=path)
        drawn.add("cgroup_ledger", number + 0.2, action="removed", hierarchy=8, cgroup_id=100 + number, path=path)
        if is_released:
            drawn.add("cgroup_ledger", number + 0.4, action="released", hierarchy=8, cgroup_id=100 + number, path=path)
    return drawn


def produced(drawn: DrawnNode) -> Origin | None:
    found = producer(Node(drawn, (at(0), at(60))))
    return found[0] if found else None


def test_a_unit_whose_cgroups_are_not_released_leaks() -> None:
    assert produced(loop(node(), ["/system.slice/agent.service"] * 9)) == Origin("unit", "agent.service")


def test_what_is_released_does_not_leak() -> None:
    drawn = loop(node(), ["/system.slice/agent.service"] * 9, is_released=True)
    assert not leaks(Node(drawn, (at(0), at(60))))
    assert produced(drawn) is None


def test_a_container_that_restarts_under_the_same_id_is_named() -> None:
    drawn = loop(node(), [f"/machine.slice/libpod-{ID}a.scope"] * 9)
    assert produced(drawn) == Origin("container", ID[:12])
    drawn.add("containers", 3, container=f"{ID}a", name="crash-loop")
    assert produced(drawn) == Origin("container", "crash-loop")


def test_containers_of_ever_new_ids_are_named_by_what_they_lie_below() -> None:
    drawn = loop(node(), [f"/jobs/{digit}{ID}" for digit in "0123456789"])
    assert produced(drawn) == Origin("cgroup", "/jobs")
    (leak,) = leaks(Node(drawn, (at(0), at(60))))
    assert (leak.pattern, leak.left) == ("/jobs/*", 10)


def test_without_a_ledger_the_restarts_tell() -> None:
    drawn = node()
    for second, restarts in ((0, 7), (30, 10)):
        drawn.add("units", second, unit="steady.service", restarts=3)
        drawn.add("units", second, unit="ecs.service", restarts=restarts)
    assert produced(drawn) == Origin("unit", "ecs.service")


def test_dead_cgroups_are_those_the_kernel_holds_without_a_directory() -> None:
    drawn = node().add("cgroups", 1, controller="memory", path="/", tracked=900, visible=100)
    drawn.add("cgroups", 31, controller="memory", path="/", tracked=1200, visible=100)
    dead = dead_cgroups(Node(drawn, (at(0), at(60))), at(60))
    assert dead is not None
    assert (dead.count, dead.live, dead.grown, dead.per_hour) == (1100, 100, 300, 36_000)
    assert dead.hours_until(1100 + 36_000) == 1
