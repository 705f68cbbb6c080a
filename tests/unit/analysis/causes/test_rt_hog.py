"""A real-time task on the core of a thread that must run."""

from tests.drawn_node import NS, DrawnNode, drawn_node
from tests.drawn_waits import by, wait

from necroscope.analysis.engine import diagnose


def spinning(*, wait: float, policy: str | None = None, described_pid: int = 77) -> DrawnNode:
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
            *("runqueue", second + 1),
            cpu=1,
            pid=20,
            comm="napi/eth0-5",
            state="S",
            run_ns=NS // 50,
            delay_ns=round(waits * NS),
        )
    if policy:
        described = {
            "comm": "control-loop",
            "pid": described_pid,
            "tid": described_pid,
            "policy": policy,
            "priority": 40,
            "cpus_allowed": "1",
        }
        node.add("tasks", 12, cpu=1, trigger="softirq_stall", samples=90, **described)
    return node


def test_a_fifo_task_that_starves_a_thread_is_named() -> None:
    (incident,) = diagnose(spinning(wait=0.93, policy="fifo")).incidents
    assert (incident.core, incident.mode, incident.verdict.cause) == (1, "user", "rt-hog")
    assert incident.verdict.confidence >= 0.9
    assert incident.verdict.culprit is not None
    assert (incident.verdict.culprit.comm, incident.verdict.culprit.pid) == ("control-loop", 77)
    assert "77" in incident.verdict.fix[0]
    assert sum("an ordinary priority, until" in step for step in incident.verdict.fix) == 1
    assert incident.verdict.fix[1].startswith("for good: ")


def test_a_spinner_that_took_the_name_of_a_real_time_daemon_is_not_that_daemon() -> None:
    for incident in diagnose(spinning(wait=0.93, policy="fifo", described_pid=5)).incidents:
        verdict = incident.verdict
        assert verdict.cause != "rt-hog" or verdict.confidence < 0.5


def test_without_the_policy_it_is_not_named_however_long_the_wait() -> None:
    (incident,) = diagnose(spinning(wait=0.93)).incidents
    assert incident.verdict.cause == "unknown"
    (lost,) = [other for other in incident.alternatives if other.cause == "rt-hog"]
    assert lost.confidence < 0.5
    assert "policy" in lost.why_not


def test_real_time_throttling_in_the_log_tells_it_too() -> None:
    (incident,) = diagnose(
        spinning(wait=0.93).event(14, "rt_throttled", "sched: RT throttling activated", cpu=1)
    ).incidents
    assert incident.verdict.cause == "rt-hog"
    assert "policy not captured" in incident.verdict.summary


def test_an_ordinary_task_behind_which_others_wait_long_is_a_hog_by_weight() -> None:
    (incident,) = diagnose(spinning(wait=0.93, policy="other")).incidents
    assert incident.verdict.cause == "userspace-hog"


def test_a_fifo_task_behind_which_nothing_waits_is_no_incident() -> None:
    assert not diagnose(spinning(wait=0.0, policy="fifo")).incidents


def test_an_ordinary_task_that_shares_its_core_is_not_real_time() -> None:
    (incident,) = diagnose(spinning(wait=0.5, policy="other")).incidents
    assert incident.verdict.cause == "userspace-hog"


def test_the_thread_is_to_be_changed_and_not_its_process() -> None:
    node = spinning(wait=0.93, policy="fifo")
    drawn = node._drawn()
    drawn["samples"] = [
        (*row[:3], 78, *row[4:]) if row[2] == 77 else row for row in drawn["samples"]
    ]
    (incident,) = diagnose(node).incidents
    assert incident.verdict.fix[0].startswith("chrt --other -p 0 78 ")


def test_ordinary_tasks_behind_it_are_its_victims_and_give_its_policy() -> None:
    node = spinning(wait=0.0)
    for second in range(10, 21):
        wait(node, second, 0.95, **by("control-loop", 77, policy="fifo", ran_ns=NS))
    (incident,) = diagnose(node).incidents
    assert (incident.core, incident.verdict.cause) == (1, "rt-hog")
    assert incident.verdict.confidence >= 0.9
    assert "trainer waited" in incident.verdict.summary
    text = " ".join(evidence.text for evidence in incident.verdict.evidence)
    assert "10.4 s in all" in text
    assert "trainer[71] waited 0.95 s for core 1" in text


def test_a_real_time_task_that_nobody_waits_for_is_no_incident() -> None:
    assert not diagnose(spinning(wait=0.0, policy="fifo")).incidents


def test_threads_of_the_kernel_that_wait_behind_it_are_nobodys_loss() -> None:
    node = spinning(wait=0.0, policy="fifo")
    for second in range(10, 21):
        spinner = by("control-loop", 77, policy="fifo", ran_ns=NS)
        wait(node, second, 0.95, "kworker/1:2", 30, **{"policy": "kernel"} | spinner)
    assert not diagnose(node).incidents


def test_two_that_take_turns_keep_the_core_together() -> None:
    node = drawn_node(
        """
        core 0:  ..............................
        core 1:  ..........abababababab........
        a: user  dsp-a[81]  /a  main
        b: user  dsp-b[82]  /a  main
        """
    )
    for second in range(11, 21):
        turn = by("dsp-a", 81, policy="rr", ran_ns=10**8)
        wait(node, second, 0.9, "webapp", 71, **turn)
        wait(node, second, 0.7, "other", 72, **by("dsp-b", 82, policy="rr", ran_ns=10**8))
    (incident,) = diagnose(node).incidents
    assert incident.verdict.cause == "rt-hog"
    assert "dsp-a (rr) and dsp-b kept core 1 for themselves" in incident.verdict.summary


def test_a_starved_task_is_found_on_a_machine_where_everyone_waits() -> None:
    node = drawn_node(
        """
        core 0:  cccccccccccccccccccccccccccccc
        core 1:  cccccccccchhhhhhcccccccccccccc
        c: user  cc1[50]  /build  main
        h: user  hog[81]  /a  main
        """
    )
    for tenth in range(300):
        wait(node, tenth / 10, 0.09, "cc1", 51 + tenth % 5)
    for second in range(10, 16):
        wait(node, second, 0.9, "webapp", 71, **by("hog", 81, policy="fifo", ran_ns=10**9))
    assert "rt-hog" in [incident.verdict.cause for incident in diagnose(node).incidents]


def test_what_waits_for_another_core_at_the_same_time_is_an_incident_of_its_own() -> None:
    node = drawn_node(
        """
        core 0:  ..............hhh.............
        core 1:  ..........aaaaaaaaaaaa........
        a: user  spinner[81]  /a  main
        h: user  burst[82]  /a  main
        """
    )
    for second in range(10, 22):
        wait(node, second, 0.9, "webapp", 71, **by("spinner", 81, policy="fifo", ran_ns=10**9))
    for second in range(14, 17):
        others = by("burst", 82, policy="fifo", ran_ns=10**9)
        wait(node, second, 0.9, "other", 72, cpu=0, **others)
    found = {incident.core: incident.verdict.cause for incident in diagnose(node).incidents}
    assert found == {0: "rt-hog", 1: "rt-hog"}
