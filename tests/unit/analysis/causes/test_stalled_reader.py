"""stalled-reader on drawn nodes: who stands at a full pipe, and whether its reader is held up."""

from typing import Any

from tests.drawn_node import DrawnNode, drawn_node
from tests.drawn_waits import by, wait

from necroscope.analysis.engine import diagnose

IDLE = """
    core 0:  ..............................
    core 1:  ..............................
    """


def full_pipe(node: DrawnNode, lasts_s: float = 8.0, **rest: Any) -> DrawnNode:
    given = {"kind": "unread", "stack": "anon_pipe_write;vfs_write", "is_open": True}
    return wait(node, 10, lasts_s, "service", 71, **given, **(rest or by("shipper", 80)))


def test_a_reader_that_is_stopped_holds_up_the_writer() -> None:
    node = wait(full_pipe(drawn_node(IDLE)), 9.5, 9.0, "shipper", 80, kind="stopped")
    (incident,) = diagnose(node).incidents
    verdict = incident.verdict
    assert verdict.cause == "stalled-reader"
    assert verdict.culprit is not None
    assert verdict.culprit.comm == "shipper"
    assert "kill -CONT 80" in verdict.fix[0]


def test_the_chain_is_followed_beyond_the_reader() -> None:
    node = full_pipe(drawn_node(IDLE))
    lock = {"kind": "file_lock", "stack": "locks_lock_inode_wait;__do_sys_flock", "is_open": True}
    wait(node, 9.8, 8.2, "shipper", 80, **lock, **by("rotate", 90, stack="hrtimer_nanosleep"))
    (incident,) = [i for i in diagnose(node).incidents if i.verdict.cause == "stalled-reader"]
    assert "for a file lock" in incident.verdict.summary
    assert incident.verdict.origin is not None
    assert incident.verdict.origin.name == "rotate"


def test_a_reader_that_is_slow_by_itself_is_no_incident() -> None:
    rest = by("less", 80, stack="n_tty_read;tty_read")
    assert not diagnose(full_pipe(drawn_node(IDLE), 15.0, **rest)).incidents


def test_a_short_stop_of_the_reader_is_no_incident() -> None:
    node = wait(full_pipe(drawn_node(IDLE), 1.5), 10.0, 1.5, "shipper", 80, kind="stopped")
    assert not diagnose(node).incidents


def test_all_who_write_to_one_reader_are_one_incident() -> None:
    node = drawn_node(IDLE)
    stacks = {"stack": "unix_wait_for_peer;unix_dgram_sendmsg;__x64_sys_sendto"}
    read = by("logd", 80, stack="__wake_up_sync_key;__unix_dgram_recvmsg;__sys_recvfrom;el0_svc")
    for pid in (71, 72, 73):
        wait(node, 10, 8.0, f"service-{pid}", pid, kind="unread", **stacks, **read)
    wait(node, 10.1, 7.8, "logd", 80, kind="stopped")
    (incident,) = diagnose(node).incidents
    assert incident.verdict.cause == "stalled-reader"
    assert "and 2 more waited up to 8.0 s" in incident.verdict.summary
    assert incident.verdict.origin is not None
    assert incident.verdict.origin.name == "logd"


def test_who_was_found_not_to_read_is_named_though_the_network_ended_the_wait() -> None:
    """Of a TCP socket the acknowledgement wakes the writer, not the reader."""
    node = drawn_node(IDLE)
    sleep = {"kind": "unread", "stack": "wait_woken;sk_stream_wait_memory;tcp_sendmsg_locked"}
    wait(node, 10, 1.5, "shipper", 71, **sleep, is_open=True)
    wait(node, 10, 4.0, "shipper", 71, **sleep, is_open=True, **by("ingest", 80))
    softirq = "sk_stream_write_space;tcp_check_space;tcp_rcv_established;net_rx_action"
    wait(node, 10, 9.0, "shipper", 71, **sleep, by_stack=softirq)
    wait(node, 9.5, 9.4, "ingest", 80, kind="stopped")
    (incident,) = diagnose(node).incidents
    assert incident.verdict.cause == "stalled-reader"
    assert incident.verdict.summary.startswith("shipper waited up to 9.0 s")
    assert incident.verdict.culprit is not None
    assert incident.verdict.culprit.comm == "ingest"
