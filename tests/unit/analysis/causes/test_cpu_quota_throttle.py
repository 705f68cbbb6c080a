"""A cgroup at its own quota waits although the node has time."""

from tests.drawn_node import DrawnNode, drawn_node

from necroscope.analysis.engine import diagnose

NS = 1_000_000_000
POD = "/kubepods/burstable/pod1/api"
CALM = f"""
    core 0:  ....................aaaaaaaaaaaaaaaaaaaa....................
    core 1:  ............................................................
    a: user+idle  api-server[640]  {POD}  main, handle
"""


def throttled(each_ns: int, picture: str = CALM, times: int = 95) -> DrawnNode:
    node = drawn_node(picture)
    for second in (30, 40):
        node.add(
            "cgroups", second, controller="cpu", path=POD, nr_throttled=times, throttled_ns=each_ns
        )
    return node


def test_a_throttled_cgroup_is_named_while_cores_idle() -> None:
    (incident,) = diagnose(throttled(8 * NS)).incidents
    assert (incident.core, incident.verdict.cause) == (None, "cpu-quota-throttle")
    assert incident.verdict.origin is not None
    assert (incident.verdict.origin.kind, incident.verdict.origin.name) == ("cgroup", POD)
    assert incident.verdict.culprit is not None
    assert incident.verdict.culprit.comm == "api-server"
    assert incident.verdict.summary.startswith(f"api-server in {POD} is throttled by its CPU quota")
    assert any("idle" in item.text for item in incident.verdict.evidence)


def test_a_little_throttling_is_life() -> None:
    assert not diagnose(throttled(NS)).incidents
    assert not diagnose(throttled(2 * NS, times=4)).incidents


def test_a_burst_of_many_threads_now_and_then_is_life() -> None:
    """Two periods of a hundred; what each of 32 cores waited in them is added up."""
    assert not diagnose(throttled(56 * NS // 10, times=2)).incidents
    bursts = throttled(56 * NS // 10, times=2)
    for second in (30, 40):
        bursts.add(
            "cgroups",
            second,
            controller="cpu",
            path="/pods/b",
            nr_throttled=90,
            throttled_ns=3 * NS,
        )
    (incident,) = diagnose(bursts).incidents
    assert incident.verdict.origin is not None
    assert incident.verdict.origin.name == "/pods/b"


def test_short_waits_in_most_periods_are_named_too() -> None:
    (incident,) = diagnose(throttled(2 * NS)).incidents
    assert incident.verdict.cause == "cpu-quota-throttle"


def test_a_core_that_somebody_holds_is_not_explained_by_it() -> None:
    held = CALM.replace(
        "core 1:  ....................................",
        "core 1:  ........................kkkkkkkkkkkk",
    ) + ("    k: system  kcompactor[9]  /  > kthread, some_new_walk\n")
    found = diagnose(throttled(8 * NS, held)).incidents
    assert "cpu-quota-throttle" not in {
        incident.verdict.cause for incident in found if incident.core == 1
    }


def test_a_unit_is_called_by_its_name() -> None:
    node = drawn_node(CALM)
    for second in (30, 40):
        node.add(
            "cgroups",
            second,
            controller="cpu",
            path="/system.slice/api.service",
            nr_throttled=95,
            throttled_ns=8 * NS,
        )
    (incident,) = diagnose(node).incidents
    assert incident.verdict.origin is not None
    assert (incident.verdict.origin.kind, incident.verdict.origin.name) == (
        "unit",
        "api.service",
    )
    assert incident.verdict.summary.count("api.service") == 1
