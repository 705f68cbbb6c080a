"""A real-time task on the core of a thread that must run."""

from tests.drawn_node import NS, DrawnNode, drawn_node

from necroscope.analysis.engine import diagnose


def spinning(*, wait: float, policy: str | None = None) -> DrawnNode:
    """A spinner on core 1, whose napi thread waits this share of each second."""
    node = drawn_node(
        """
        core 0:  ..............................
        core 1:  ..........ffffffffffff........
        f: user  control-loop[77]  /user.slice  main, spin
        """
    )
    for second in range(30):
        waits = wait if 10 <= second < 22 else 0.0
        node.add(
            *("runqueue", second + 1), cpu=1, pid=20, comm="napi/eth0-5", state="S", run_ns=NS // 50, delay_ns=round(waits * NS)
        )
    if policy:
        described = {"comm": "control-loop", "pid": 77, "tid": 77, "policy": policy, "priority": 40, "cpus_allowed": "1"}
        node.add("tasks", 12, cpu=1, trigger="softirq_stall", samples=90, **described)
    return node


def test_a_fifo_task_that_starves_a_thread_is_named() -> None:
    (incident,) = diagnose(spinning(wait=0.93, policy="fifo")).incidents
    assert (incident.core, incident.mode, incident.verdict.cause) == (1, "user", "rt-hog")
    assert incident.verdict.confidence >= 0.9
    assert incident.verdict.culprit is not None
    assert (incident.verdict.culprit.comm, incident.verdict.culprit.pid) == ("control-loop", 77)
    assert "77" in incident.verdict.fix[0]


def test_a_wait_that_fair_scheduling_does_not_allow_tells_it_too() -> None:
    (incident,) = diagnose(spinning(wait=0.93)).incidents
    assert incident.verdict.cause == "rt-hog"
    assert 0.5 <= incident.verdict.confidence < 0.9


def test_a_fifo_task_behind_which_nothing_waits_is_no_incident() -> None:
    assert not diagnose(spinning(wait=0.0, policy="fifo")).incidents


def test_an_ordinary_task_that_shares_its_core_is_not_real_time() -> None:
    (incident,) = diagnose(spinning(wait=0.5, policy="other")).incidents
    assert incident.verdict.cause == "userspace-hog"
