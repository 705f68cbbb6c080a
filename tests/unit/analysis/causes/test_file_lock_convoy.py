"""Processes behind a lock on a file."""

from tests.drawn_node import DrawnNode, drawn_node
from tests.drawn_waits import by, wait

from necroscope.analysis.engine import diagnose

STOPPED = "do_signal_stop;get_signal;arch_do_signal_or_restart"


def waiting(
    holder: str | None = "agent", lasts_s: float = 4.0, found_in: str | None = STOPPED
) -> DrawnNode:
    node = drawn_node(
        """
        core 0:  ..............................
        core 1:  ..............................
        """
    )
    known = by(holder, 50, stack=found_in) if holder else {}
    rest = {"kind": "file_lock", "stack": "locks_lock_inode_wait;__do_sys_flock", "is_open": True}
    return wait(node, 10, lasts_s, comm="job", **rest, **known)


def test_who_is_stopped_meanwhile_is_named_while_the_wait_goes_on() -> None:
    (incident,) = diagnose(waiting()).incidents
    verdict = incident.verdict
    assert verdict.cause == "file-lock-convoy"
    assert verdict.culprit is not None
    assert (verdict.culprit.comm, verdict.culprit.pid) == ("agent", 50)
    assert "which is stopped" in verdict.summary
    assert verdict.fix[0].startswith("kill -CONT 50")
    assert any("stopped, by a signal or a debugger" in one.text for one in verdict.evidence)


def test_a_short_wait_is_no_incident() -> None:
    assert not diagnose(waiting(lasts_s=0.6)).incidents


def test_a_lock_without_a_known_holder_is_not_blamed_on_anyone() -> None:
    assert not diagnose(waiting(holder=None)).incidents


def test_the_chain_leads_from_the_lock_over_a_socket_to_who_is_stopped() -> None:
    node = drawn_node(
        """
        core 0:  ..............................
        core 1:  ..............................
        """
    )
    lock = {"kind": "file_lock", "stack": "locks_lock_inode_wait;__do_sys_flock", "is_open": True}
    for pid in (71, 72):
        wait(node, 10, 8.0, "job", pid, **lock, **by("installer", 80, stack="unix_stream_recvmsg"))
    silent = {"kind": "unanswered", "stack": "unix_stream_recvmsg", "is_open": True}
    wait(node, 11, 7.0, "installer", 80, **silent, **by("backend", 90, stack="do_signal_stop"))
    wait(node, 10, 8.0, "backend", 90, kind="stopped", stack="do_signal_stop", is_open=True)
    (incident,) = diagnose(node).incidents
    verdict = incident.verdict
    assert verdict.cause == "file-lock-convoy"
    assert verdict.culprit is not None
    assert verdict.origin is not None
    assert (verdict.culprit.comm, verdict.origin.name) == ("installer", "backend")
    assert verdict.summary.endswith("; it waits for backend[90], which is stopped")
    assert verdict.fix[0].startswith("kill -CONT 90")
    text = " / ".join(evidence.text for evidence in verdict.evidence)
    assert "installer[80] waited 7.00 s to read from a pipe or socket" in text
    assert "whose other end is backend[90]" in text
    assert "backend[90] did not run for 8.00 s, stopped by a signal" in text


def test_the_child_that_the_holder_waits_for_is_what_to_act_on() -> None:
    """flock(1) has the lock while the command that it started works."""
    node = waiting("flock", 8.0, "do_wait;kernel_wait4")
    child = {"kind": "unanswered", "stack": "do_wait;kernel_wait4", "is_open": True}
    wait(node, 10.5, 7.5, "flock", 50, **child, **by("backup", 51, stack="hrtimer_nanosleep"))
    (incident,) = diagnose(node).incidents
    verdict = incident.verdict
    assert verdict.culprit is not None
    assert verdict.culprit.comm == "flock"
    assert verdict.origin is not None
    assert verdict.origin.name == "backup"
    assert verdict.summary.endswith("holds and does not release; it waits for backup[51]")
    texts = [one.text for one in verdict.evidence]
    assert any("for its child process to end, which is backup[51]" in text for text in texts)
    assert any("backup[51] was looked at: it sleeps until a timer" in text for text in texts)


def test_who_stands_behind_another_lock_meanwhile_is_told() -> None:
    node = waiting(lasts_s=8.0)
    rest = {"kind": "file_lock", "stack": "locks_lock_inode_wait;__do_sys_flock", "is_open": True}
    wait(node, 11, 5.0, "cron", 90, **rest, **by("rotate", 91, stack="do_signal_stop"))
    (incident,) = diagnose(node).incidents
    assert "agent[50]" in incident.verdict.summary
    texts = [one.text for one in incident.verdict.evidence]
    assert "cron waited up to 5.0 s for another lock, which rotate[91] held" in texts


def test_a_server_that_was_never_asked_is_not_blamed_for_the_silence() -> None:
    """Anyone can hold a lock of their own and read from a socket of a daemon that is idle."""
    node = drawn_node(
        """
        core 0:  ..............................
        core 1:  ..............................
        """
    )
    lock = {"kind": "file_lock", "stack": "locks_lock_inode_wait;__do_sys_flock", "is_open": True}
    wait(node, 10, 8.0, "job", 71, **lock, **by("liar", 80, stack="unix_stream_recvmsg"))
    silent = {"kind": "unanswered", "stack": "unix_stream_recvmsg", "is_open": True}
    wait(node, 11, 7.0, "liar", 80, **silent, **by("dbus-daemon", 90, stack="unix_dgram_recvmsg"))
    wait(node, 11, 7.0, "dbus-daemon", 90, **silent, **by("systemd", 1, stack="do_epoll_wait"))
    (incident,) = diagnose(node).incidents
    verdict = incident.verdict
    assert verdict.culprit is not None
    assert verdict.origin is not None
    assert (verdict.culprit.comm, verdict.origin.name) == ("liar", "liar")
    assert "dbus-daemon" not in verdict.summary
    assert "systemd" not in verdict.summary
    # Where it was found is still reported.
    assert any("dbus-daemon[90]" in one.text for one in verdict.evidence)
