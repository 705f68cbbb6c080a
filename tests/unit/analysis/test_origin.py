"""Who leaves dead cgroups behind."""

import json

from tests.drawn_node import DrawnNode, at, drawn_node

from necroscope.analysis.node import Node
from necroscope.analysis.origin import DeadCgroups, Producer, dead_cgroups, leaks, producer
from necroscope.analysis.report import Origin

ID = "677df4abd054d1c4bffe14cda0cbd6f464cd2a2b869262da8614e59d9d09697"


def node() -> DrawnNode:
    return drawn_node("core 0: " + "." * 60)


def loop(drawn: DrawnNode, paths: list[str], is_released: bool = False) -> DrawnNode:
    for number, path in enumerate(paths):
        drawn.add(
            "cgroup_ledger", number, action="made", hierarchy=8, cgroup_id=100 + number, path=path
        )
        drawn.add(
            "cgroup_ledger",
            number + 0.2,
            action="removed",
            hierarchy=8,
            cgroup_id=100 + number,
            path=path,
        )
        if is_released:
            drawn.add(
                "cgroup_ledger",
                number + 0.4,
                action="released",
                hierarchy=8,
                cgroup_id=100 + number,
                path=path,
            )
    return drawn


def producer_of(drawn: DrawnNode) -> Producer | None:
    return producer(Node(drawn, (at(0), at(60))))


def produced(drawn: DrawnNode) -> Origin | None:
    found = producer_of(drawn)
    return found.origin if found else None


def test_a_unit_whose_cgroups_are_not_released_leaks() -> None:
    assert produced(loop(node(), ["/system.slice/agent.service"] * 9)) == Origin(
        "unit", "agent.service"
    )


def test_what_is_released_does_not_leak() -> None:
    drawn = loop(node(), ["/system.slice/agent.service"] * 9, is_released=True)
    assert not leaks(Node(drawn, (at(0), at(60))))
    assert produced(drawn) is None


def test_an_id_that_a_released_cgroup_had_before_does_not_hide_the_dead_one() -> None:
    drawn = node()
    for number in range(9):
        for offset, action, path in (
            (0.0, "removed", "/system.slice/healthy.service"),
            (0.1, "released", "/system.slice/healthy.service"),
            (0.2, "made", "/system.slice/agent.service"),
            (0.3, "removed", "/system.slice/agent.service"),
        ):
            drawn.add(
                "cgroup_ledger",
                number + offset,
                action=action,
                hierarchy=8,
                cgroup_id=50 + number,
                path=path,
            )
    assert produced(drawn) == Origin("unit", "agent.service")


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


def recreate(drawn: DrawnNode, ids: list[str], unit: str | None) -> DrawnNode:
    """What Docker's events tell of containers that a supervisor makes one after the other."""
    for number, one in enumerate(ids):
        own = {"container": one, "name": "ecs-agent", "image": "amazon-ecs-agent:1.8"}
        for offset, kind, more in ((0, "start", {}), (0.2, "die", {"exit_code": 5})):
            drawn.event(
                number + offset, f"container_{kind}", fields=json.dumps(own | more), by_kernel=False
            )
    if unit is not None:
        made = {"name": "ecs-agent", "unit": unit, "how": "no other unit is connected"}
        drawn.event(5, "container_made", fields=json.dumps(made), by_kernel=False)
    return drawn


def test_a_container_of_ever_new_ids_leads_to_the_unit_that_makes_it_and_its_package() -> None:
    ids = [f"{digit}{ID}" for digit in "0123456789"]
    drawn = recreate(loop(node(), [f"/docker/{one}" for one in ids]), ids, "ecs.service")
    drawn.add("units", 1, unit="ecs.service", fragment="/lib/systemd/system/ecs.service")
    drawn.add("facts", 1, kind="unit_package", name="ecs.service", value="amazon-ecs-init")
    found = producer_of(drawn)
    assert found is not None
    assert found.origin == Origin(
        "unit",
        "ecs.service",
        (
            ("container", "ecs-agent"),
            ("image", "amazon-ecs-agent:1.8"),
            ("file", "/lib/systemd/system/ecs.service"),
            ("package", "amazon-ecs-init"),
        ),
    )
    assert "container ecs-agent is re-created every 1 s, 10 times" in found.words


def test_two_starts_in_the_events_are_enough_where_the_ledger_has_ten() -> None:
    ids = [f"{digit}{ID}" for digit in "0123456789"]
    known = loop(node(), [f"/docker/{one}" for one in ids])
    for number, one in enumerate(ids[:6]):
        known.add("containers", number, container=one, name="ecs-agent")
    origin = produced(recreate(known, ids[8:], "ecs.service"))
    assert origin is not None
    assert (origin.kind, origin.name) == ("unit", "ecs.service")


def test_one_whose_maker_was_not_seen_is_still_named_with_its_image() -> None:
    ids = [f"{digit}{ID}" for digit in "0123456789"]
    drawn = recreate(loop(node(), [f"/docker/{one}" for one in ids]), ids, None)
    assert produced(drawn) == Origin("container", "ecs-agent", (("image", "amazon-ecs-agent:1.8"),))


def test_without_a_ledger_what_is_recreated_as_often_as_cgroups_die_is_named() -> None:
    ids = [f"{digit}{ID}" for digit in "0123456789"]
    drawn = recreate(node().zombies(0, 500).zombies(30, 512), ids, "ecs.service")
    origin = produced(drawn)
    assert origin is not None
    assert (origin.kind, origin.name) == ("unit", "ecs.service")
    assert produced(recreate(node().zombies(0, 500).zombies(30, 900), ids, "ecs.service")) is None


def restarting(grown: int, **restarts: int) -> DrawnNode:
    """Without a ledger: this many more cgroups are dead after half a minute, and units restarted so
    often.
    """
    drawn = node().zombies(0, 500).zombies(30, 500 + grown)
    for second in (0, 30):
        for name, count in restarts.items():
            drawn.add(
                "units", second, unit=f"{name}.service", restarts=7 + (count if second else 0)
            )
    return drawn


def test_without_a_ledger_who_restarts_as_often_as_cgroups_die_is_named() -> None:
    found = producer_of(restarting(40, steady=0, odd=1, ecs=36))
    assert found == Producer(
        Origin("unit", "ecs.service"),
        "unit ecs.service restarted 36 times while 40 cgroups died",
        "units",
    )


def test_who_restarts_far_less_or_far_more_often_than_cgroups_die_is_not_accused() -> None:
    assert produced(restarting(40, odd=1)) is None
    assert produced(restarting(40, mad=200)) is None
    assert produced(restarting(0, odd=1)) is None


def test_containers_without_a_name_are_not_taken_for_one() -> None:
    drawn = node().zombies(0, 500).zombies(30, 510)
    for second, digit, restarts in ((0, "a", 0), (30, "b", 10)):
        drawn.add("containers", second, container=digit * 64, restarts=restarts)
    assert produced(drawn) is None


def test_where_the_ledger_tells_the_restarts_are_reported_with_it() -> None:
    drawn = loop(node(), ["/system.slice/agent.service"] * 9)
    for second, restarts in ((0, 400), (30, 409)):
        drawn.add("units", second, unit="agent.service", restarts=restarts)
    found = producer_of(drawn)
    assert found is not None
    assert found.words.endswith("not released in 60 s; agent.service restarted 9 times")
    assert found.table == "cgroup_ledger"


def test_dead_below_a_directory_are_told_from_the_table_of_cgroups() -> None:
    drawn = node().zombies(1, 500).add("cgroups", 1, controller="memory", path="/jobs", dying=480)
    assert producer_of(drawn) == Producer(
        Origin("cgroup", "/jobs"), "480 dead cgroups lie below /jobs", "cgroups"
    )


def test_dead_cgroups_are_those_the_kernel_holds_without_a_directory() -> None:
    drawn = node().add("cgroups", 1, controller="memory", path="/", tracked=900, visible=100)
    drawn.add("cgroups", 31, controller="memory", path="/", tracked=1200, visible=100)
    dead = dead_cgroups(Node(drawn, (at(0), at(60))), at(60))
    assert dead is not None
    assert (dead.count, dead.live, dead.grown, dead.per_hour) == (1100, 100, 300, 36_000)


def growing(count: int, grown: int) -> str | None:
    return DeadCgroups(count, 100, grown, seconds=3600).describe_growth()


def test_at_its_rate_is_reported_since_when_and_when_it_will_hurt() -> None:
    assert growing(2_400, 100) == (
        "at this rate the leak began 1 d ago and reaches 7,000 (a walk of half a second) in 1 d 22 h"
    )
    assert (
        growing(10_000, 250)
        == "at this rate the leak began 1 d 16 h ago and reaches 70,000 (a walk of 5 s, in which"
        " network cards reset) in 10 d"
    )
    assert growing(96_000, 1_000) == "at this rate the leak began 4 d ago"


def test_of_those_that_do_not_grow_nothing_is_foretold() -> None:
    assert growing(68_680, 0) is None
    assert DeadCgroups(68_680, 100, 5, seconds=0).describe_growth() is None
