"""late-heartbeat on drawn nodes: a thread with a rhythm that misses beats, and why."""

from typing import Any

import pytest
from tests.drawn_node import NS, DrawnNode, drawn_node
from tests.drawn_waits import by, wait

from necroscope.analysis.engine import diagnose
from necroscope.analysis.report import Incident

IDLE = """
    core 0:  ..............................
    core 1:  ..............................
    """


def late(node: DrawnNode, second: float, late_s: float, **rest: Any) -> DrawnNode:
    """A beat that was due at `second` and came this much later."""
    given = {"is_open": False, "pid": 71, "tid": 71, "comm": "raylet", "period_ns": NS // 4} | rest
    return node.add("late_beats", second + late_s, late_ns=round(late_s * NS), **given)


def only(node: DrawnNode) -> Incident:
    (incident,) = diagnose(node).incidents
    return incident


def test_a_beat_that_waited_for_a_core_among_many_is_late() -> None:
    node = wait(drawn_node(IDLE), 10, 2.4, "raylet", **by("cc1", 90, ran_ns=NS // 3))
    incident = only(late(node, 10.0, 2.4))
    assert (incident.verdict.cause, incident.core) == ("late-heartbeat", 1)
    assert "raylet[71], which beats every 0.25 s, was late by 2.4 s" in incident.verdict.summary
    assert "for core 1" in incident.verdict.summary


@pytest.mark.parametrize(
    ("stack", "words", "fix"),
    [
        ("do_signal_stop;get_signal", "stopped by a signal", "kill -CONT 71"),
        ("do_freezer_trap;get_signal", "in a frozen cgroup", "cgroup.freeze"),
    ],
)
def test_a_beat_of_a_process_that_was_stopped_says_so(stack: str, words: str, fix: str) -> None:
    node = wait(drawn_node(IDLE), 11, 7.0, "raylet", kind="stopped", stack=stack)
    verdict = only(late(node, 10.3, 7.5, tid=75, comm="beat")).verdict
    assert verdict.cause == "late-heartbeat"
    assert words in verdict.summary
    assert any(fix in text for text in verdict.fix)
    assert verdict.culprit is not None
    assert verdict.culprit.pid == 71


def test_who_traces_the_process_is_named() -> None:
    rest = {"kind": "stopped", "stack": "ptrace_stop;do_jobctl_trap", "is_open": True}
    node = wait(drawn_node(IDLE), 11, 8.0, "raylet", **rest, **by("gdb", 99))
    verdict = only(late(node, 10.3, 8.0)).verdict
    assert verdict.culprit is not None
    assert (verdict.cause, verdict.culprit.comm) == ("late-heartbeat", "gdb")


def test_a_thread_that_is_late_by_itself_is_no_incident() -> None:
    assert not diagnose(late(drawn_node(IDLE), 10, 8.0)).incidents


def test_a_stop_without_a_rhythm_is_no_incident() -> None:
    node = wait(drawn_node(IDLE), 10, 15.0, "vim", kind="stopped", stack="do_signal_stop")
    assert not diagnose(node).incidents


@pytest.mark.parametrize(("late_s", "period_s"), [(0.7, 0.25), (1.5, 1.0)])
def test_a_little_late_is_no_incident(late_s: float, period_s: float) -> None:
    node = wait(drawn_node(IDLE), 10, late_s, "raylet", kind="stopped", stack="do_signal_stop")
    assert not diagnose(late(node, 10, late_s, period_ns=round(period_s * NS))).incidents


def test_nice_work_may_be_late() -> None:
    node = wait(drawn_node(IDLE), 10, 2.4, "indexer", priority=10)
    assert not diagnose(late(node, 10, 2.4, comm="indexer")).incidents


def test_where_the_lock_it_waited_for_is_known_the_lock_is_the_cause() -> None:
    node = drawn_node(IDLE)
    for pid in (71, 72, 73):
        rest = {
            "stack": "rtnl_lock;devinet_ioctl",
            **by("ip", 90, stack="mutex_unlock;rtnl_unlock"),
        }
        wait(node, 10, 3.0, "raylet", pid, **rest)
    verdict = only(late(node, 10, 3.0)).verdict
    assert verdict.cause == "kernel-lock-convoy"
    assert any("with a steady rhythm" in evidence.text for evidence in verdict.evidence)


def test_a_writer_has_the_rhythm_of_its_reader_and_is_not_late() -> None:
    rest = {"kind": "unread", "stack": "anon_pipe_write;vfs_write", **by("gzip", 80)}
    node = wait(drawn_node(IDLE), 10, 6.0, "tar", **rest)
    assert not diagnose(late(node, 10, 6.0, comm="tar")).incidents
