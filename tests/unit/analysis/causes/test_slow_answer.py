"""slow-answer on drawn nodes: programs that stand in the kernel until a process answers."""

from typing import Any

import pytest
from tests.drawn_node import DrawnNode, drawn_node
from tests.drawn_waits import by, wait

from necroscope.analysis.engine import diagnose

IDLE = """
    core 0:  ..............................
    core 1:  ..............................
    """
OPENS = "fanotify_handle_event;fsnotify;do_dentry_open;do_sys_openat2"
PERMITS = "autoremove_wake_function;__wake_up;fanotify_write;vfs_write;do_syscall_64"


def opens(node: DrawnNode, lasts_s: float = 3.0, stack: str = OPENS, **rest: Any) -> DrawnNode:
    given = rest or by("scanner", 80, stack=PERMITS)
    for pid in (71, 72):
        wait(node, 10, lasts_s, "webapp", pid, stack=stack, **given)
    return node


@pytest.mark.parametrize(
    ("stack", "by_stack"),
    [
        (OPENS, PERMITS),
        (
            "request_wait_answer;__fuse_simple_request;fuse_lookup",
            "__wake_up;fuse_request_end;fuse_dev_do_write;do_syscall_64",
        ),
        ("handle_userfault;__handle_mm_fault", "__wake_up;userfaultfd_ioctl;do_syscall_64"),
        ("unix_wait_for_peer;unix_stream_connect", "__wake_up;unix_accept;do_syscall_64"),
        ("kernel_clone;__do_sys_vfork", "complete;mm_release;do_exit;do_syscall_64"),
        ("autofs_wait;autofs_mount_wait", "__wake_up;autofs_wait_release;el0_svc"),
    ],
)
def test_who_ends_the_waits_is_who_answers_late(stack: str, by_stack: str) -> None:
    node = opens(drawn_node(IDLE), stack=stack, **by("server", 80, stack=by_stack))
    incidents = diagnose(node).incidents
    assert {incident.verdict.cause for incident in incidents} == {"slow-answer"}
    verdict = incidents[0].verdict
    assert verdict.culprit is not None
    assert verdict.culprit.comm == "server"
    assert verdict.origin is not None
    assert verdict.origin.name == "server"
    assert "until server[80] answered" in verdict.summary


def test_an_answerer_that_is_stopped_is_told_with_the_way_to_wake_it() -> None:
    node = wait(opens(drawn_node(IDLE), 8.0), 10.2, 7.6, "scanner", 80, kind="stopped")
    (incident,) = diagnose(node).incidents
    assert "which was stopped" in incident.verdict.summary
    assert "kill -CONT 80" in incident.verdict.fix[0]


def test_the_one_that_holds_up_the_answerer_is_what_to_act_on() -> None:
    node = opens(drawn_node(IDLE), 4.0)
    wait(node, 10.1, 3.8, "scanner", 80, **by("spinner", 99, policy="fifo", ran_ns=3 * 10**9))
    (incident,) = [i for i in diagnose(node).incidents if i.verdict.cause == "slow-answer"]
    assert incident.verdict.origin is not None
    assert incident.verdict.origin.name == "spinner"


def test_one_slow_answer_is_no_incident() -> None:
    assert not diagnose(opens(drawn_node(IDLE), 1.2)).incidents


def test_a_signal_or_an_interrupt_is_no_answer() -> None:
    killed = by("kill", 90, stack="complete_signal;do_send_sig_info;__x64_sys_kill;do_syscall_64")
    assert not diagnose(opens(drawn_node(IDLE), **killed)).incidents
    kernel = by("kworker/0:1", 12, stack="complete;process_one_work;kthread;ret_from_fork")
    assert not diagnose(opens(drawn_node(IDLE), **kernel)).incidents


def test_an_answerer_that_waits_for_its_disk_is_not_accused() -> None:
    node = opens(drawn_node(IDLE), 4.0)
    wait(node, 10.1, 3.8, "scanner", 80, stack="folio_wait_bit_common;filemap_read")
    assert "slow-answer" not in {i.verdict.cause for i in diagnose(node).incidents}


def asked(held_up_s: float = 7.0, **stop: Any) -> DrawnNode:
    """A client that has asked a server of this node, which has not read the question."""
    node = drawn_node(IDLE)
    silent = {"kind": "unserved", "stack": "wait_woken;tcp_recvmsg", "is_open": True}
    wait(node, 10, 8.0, "client", 71, **silent, **by("server", 80, stack="do_signal_stop"))
    return wait(node, 10.5, held_up_s, "server", 80, **(stop or {"kind": "stopped"}))


def test_a_server_that_is_stopped_with_a_question_unread_is_named() -> None:
    (incident,) = diagnose(asked()).incidents
    verdict = incident.verdict
    assert verdict.cause == "slow-answer"
    assert verdict.summary.startswith("client waited up to 8.0 s for an answer from server[80]")
    assert verdict.culprit is not None
    assert verdict.culprit.comm == "server"
    assert "kill -CONT 80" in verdict.fix[0]


def test_a_server_that_has_no_core_leaves_questions_unread_too() -> None:
    node = asked(7.5, **by("hog", 99, policy="fifo", ran_ns=7 * 10**9))
    verdicts = {i.verdict.cause: i.verdict for i in diagnose(node).incidents}
    assert "server[80]" in verdicts["slow-answer"].summary
    origin = verdicts["slow-answer"].origin
    assert origin is not None
    assert origin.name == "hog"


def test_a_server_that_was_held_up_for_a_moment_is_not_why() -> None:
    assert not diagnose(asked(1.2)).incidents


def test_the_tracer_of_a_server_that_is_stopped_is_named() -> None:
    stop = {"kind": "stopped", "stack": "ptrace_stop;get_signal", "is_open": True}
    (incident,) = diagnose(asked(7.0, **stop, **by("gdb", 99))).incidents
    assert incident.verdict.summary.endswith("which was stopped by its tracer gdb[99]")
    assert incident.verdict.fix[0].startswith("end its tracer, gdb (pid 99)")


def test_a_server_in_a_frozen_cgroup_is_not_woken_by_a_signal() -> None:
    stop = {"kind": "stopped", "stack": "do_freezer_trap;get_signal"}
    (incident,) = diagnose(asked(7.0, **stop)).incidents
    assert "in a frozen cgroup" in incident.verdict.summary
    assert "cgroup.freeze" in incident.verdict.fix[0]
    assert "kill -CONT" not in " ".join(incident.verdict.fix)
