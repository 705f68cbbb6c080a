"""One thread that computes on one core: when it is an incident, and when it is a busy node."""

from tests.drawn_node import NS, DrawnNode, at, drawn_node

from necroscope.analysis.engine import diagnose

ONE = """
    core 0:  ........................................
    core 1:  ..........uuuuuuuuuuuuuuuu..............
    u: user  encoder[90]  /system.slice/encoder.service  main, loop
"""


def computing(cpus_allowed: str | None = None) -> DrawnNode:
    node = drawn_node(ONE)
    if cpus_allowed:
        described = {
            "comm": "encoder",
            "pid": 90,
            "tid": 90,
            "policy": "other",
            "priority": 0,
            "cpus_allowed": cpus_allowed,
        }
        node.add("tasks", 15, cpu=1, trigger="user_busy", samples=95, **described)
    return node


def test_a_thread_that_merely_computes_is_no_incident() -> None:
    assert not diagnose(computing()).incidents
    assert not diagnose(computing("0-1")).incidents


def with_cpu_pressure(node: DrawnNode, level: float, before: float = 0.0) -> DrawnNode:
    for second in range(1, 40):
        share = level if 11 <= second <= 26 else before
        node.add("pressure", second, resource="cpu", some_ns=round(share * NS), full_ns=0)
    return node


def with_a_waiting_thread(node: DrawnNode) -> DrawnNode:
    for second in range(10, 26):
        node.add(
            "runqueue",
            second + 1,
            cpu=1,
            pid=20,
            comm="napi/eth0-5",
            state="S",
            run_ns=NS // 3,
            delay_ns=NS // 2,
        )
    return node


def test_a_bound_thread_behind_which_nobody_waits_is_no_incident() -> None:
    assert not diagnose(computing("1")).incidents
    assert not diagnose(with_cpu_pressure(computing("1"), 0.01)).incidents


def test_a_bound_thread_behind_which_tasks_wait_is_named() -> None:
    (incident,) = diagnose(with_cpu_pressure(computing("1"), 0.7)).incidents
    assert (incident.core, incident.mode, incident.verdict.cause) == (1, "user", "userspace-hog")
    assert incident.verdict.confidence >= 0.9
    assert "taskset -pc 0-1 90" in incident.verdict.fix[0]
    assert any("other tasks waited for a core" in item.text for item in incident.verdict.evidence)


def test_one_core_among_many_is_felt_though_the_mean_over_busy_cores_is_small() -> None:
    others = "\n".join(
        f"    core {cpu}:  ..........{16 * 'h'}.............." for cpu in range(2, 10)
    )
    node = drawn_node(f"{ONE}{others}\n    h: user+idle  sh[91]  /  main")
    described = {"comm": "encoder", "pid": 90, "tid": 90, "policy": "other", "cpus_allowed": "1"}
    node.add("tasks", 15, cpu=1, trigger="user_busy", samples=95, **described)
    (incident,) = diagnose(with_cpu_pressure(node, 0.15)).incidents
    assert incident.verdict.cause == "userspace-hog"


def test_tasks_that_wait_as_before_do_not_wait_behind_it() -> None:
    busy = ONE.replace("core 0:  ........................................", f"core 0:  {20 * 'h.'}")
    node = drawn_node(f"{busy}    h: user+idle  sh[91]  /  main")
    described = {"comm": "encoder", "pid": 90, "tid": 90, "policy": "other", "cpus_allowed": "1"}
    node.add("tasks", 15, cpu=1, trigger="user_busy", samples=95, **described)
    assert not diagnose(with_cpu_pressure(node, 0.25, before=0.6)).incidents


def test_tasks_that_wait_are_not_its_own_fault_where_the_thread_may_run_elsewhere() -> None:
    assert not diagnose(with_cpu_pressure(computing("0-1"), 0.7)).incidents


def test_tasks_without_quota_left_do_not_wait_behind_it() -> None:
    node = with_cpu_pressure(computing("1"), 0.7)
    for second in (10, 20, 30):
        node.add(
            "cgroups",
            second,
            controller="cpu",
            path="/pods/b",
            throttled_ns=8 * NS,
            nr_throttled=90,
        )
    assert "userspace-hog" not in [one.verdict.cause for one in diagnose(node).incidents]


def test_a_thread_behind_which_others_wait_is_named() -> None:
    (incident,) = diagnose(with_a_waiting_thread(computing("1"))).incidents
    assert incident.verdict.cause == "userspace-hog"
    assert incident.verdict.confidence >= 0.9


def test_asked_about_the_moment_it_is_reported() -> None:
    (incident,) = diagnose(computing(), at_ns=at(18)).incidents
    assert incident.verdict.culprit is not None
    assert incident.verdict.culprit.comm == "encoder"
    assert incident.verdict.cause == "unknown"
    assert not incident.is_wrong


def test_other_cores_are_reported_as_they_were() -> None:
    node = drawn_node(
        ONE.replace(
            "core 0:  ........................................",
            "core 0:  ..........bbbbbbb.........bb............",
        )
        + "    b: user  sh[91]  /  main"
    )
    node.add(
        "tasks",
        15,
        cpu=1,
        trigger="user_busy",
        samples=95,
        comm="encoder",
        pid=90,
        tid=90,
        policy="other",
        cpus_allowed="1",
    )
    (incident,) = diagnose(with_a_waiting_thread(node)).incidents
    assert "the other cores were 55% idle" in incident.verdict.summary


def test_a_node_that_trains_on_all_cores_has_no_incident() -> None:
    node = drawn_node(
        "core 0: ....uuuuuuuuuuuuuuuuuuu\ncore 1: ....uuuuuuuuuuuuuuuuuuu\nu: user  train[9]  / "
        " main, step"
    )
    assert not diagnose(node).incidents


def test_the_thread_is_to_be_changed_and_not_its_process() -> None:
    node = with_a_waiting_thread(computing("1"))
    drawn = node._drawn()
    drawn["samples"] = [
        (*row[:3], 93, *row[4:]) if row[2] == 90 else row for row in drawn["samples"]
    ]
    (incident,) = diagnose(node).incidents
    assert incident.verdict.fix[0].startswith("taskset -pc 0-1 93 ")
