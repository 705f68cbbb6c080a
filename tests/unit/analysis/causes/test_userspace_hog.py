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
        described = {"comm": "encoder", "pid": 90, "tid": 90, "policy": "other", "priority": 0, "cpus_allowed": cpus_allowed}
        node.add("tasks", 15, cpu=1, trigger="user_busy", samples=95, **described)
    return node


def test_a_thread_that_merely_computes_is_no_incident() -> None:
    assert not diagnose(computing()).incidents
    assert not diagnose(computing("0-1")).incidents


def test_a_thread_bound_to_its_core_is_named_but_not_with_full_confidence() -> None:
    (incident,) = diagnose(computing("1")).incidents
    assert (incident.core, incident.mode, incident.verdict.cause) == (1, "user", "userspace-hog")
    assert 0.5 <= incident.verdict.confidence < 0.85
    assert "taskset -pc 0-1 90" in incident.verdict.fix[0]


def test_a_thread_behind_which_others_wait_is_named() -> None:
    node = computing("1")
    for second in range(10, 26):
        node.add("runqueue", second + 1, cpu=1, pid=20, comm="napi/eth0-5", state="S", run_ns=NS // 3, delay_ns=NS // 2)
    (incident,) = diagnose(node).incidents
    assert incident.verdict.cause == "userspace-hog"
    assert incident.verdict.confidence >= 0.9


def test_asked_about_the_moment_it_is_told() -> None:
    (incident,) = diagnose(computing(), at_ns=at(18)).incidents
    assert incident.verdict.culprit is not None
    assert incident.verdict.culprit.comm == "encoder"
    assert incident.verdict.cause == "unknown"
    assert not incident.is_wrong


def test_other_cores_are_told_as_they_were() -> None:
    node = drawn_node(
        ONE.replace("core 0:  ........................................", "core 0:  ..........bbbbbbb.........bb............")
        + "    b: user  sh[91]  /  main"
    )
    node.add(
        "tasks", 15, cpu=1, trigger="user_busy", samples=95, comm="encoder", pid=90, tid=90, policy="other", cpus_allowed="1"
    )
    (incident,) = diagnose(node).incidents
    assert "the other cores were 40% idle" in incident.verdict.summary


def test_a_node_that_trains_on_all_cores_has_no_incident() -> None:
    node = drawn_node("core 0: ....uuuuuuuuuuuuuuuuuuu\ncore 1: ....uuuuuuuuuuuuuuuuuuu\nu: user  train[9]  /  main, step")
    assert not diagnose(node).incidents


def test_the_thread_is_to_be_changed_and_not_its_process() -> None:
    node = computing("1")
    drawn = node._drawn()
    drawn["samples"] = [(*row[:3], 93, *row[4:]) if row[2] == 90 else row for row in drawn["samples"]]
    (incident,) = diagnose(node).incidents
    assert incident.verdict.fix[0].startswith("taskset -pc 0-1 93 ")
