"""A hung task is blocked I/O only where it waits for I/O; else the lock it waits for is named."""

import pytest
from tests.drawn_node import DrawnNode, at, drawn_node

from necroscope.analysis.engine import diagnose
from necroscope.analysis.report import Incident

IDLE = "core 0: {0}\ncore 1: {0}".format("." * 200)
RTNL = ("__schedule", "schedule", "schedule_preempt_disabled", "__mutex_lock", "rtnl_lock")
DISK = ("__schedule", "schedule", "io_schedule", "folio_wait_bit_common", "ext4_read_folio")


def hung(trace: tuple[str, ...], seconds: int = 122, more: str = "", wait: str = "") -> DrawnNode:
    message = f"INFO: task ip:77 blocked{wait} for more than {seconds} seconds."
    frames = "\n".join(f" {function}+0x12/0x40" for function in trace)
    caught = f'"comm": "ip", "pid": 77, "blocked_s": {seconds}' + (
        ', "wait": "in I/O wait"' if wait else ""
    )
    return drawn_node(IDLE).event(
        190,
        "hung_task",
        message,
        pid=77,
        comm="ip",
        lines=f"{message}\n{more}task:ip state:D\nCall Trace:\n{frames}",
        fields=f"{{{caught}}}",
    )


def only(node: DrawnNode) -> Incident:
    (incident,) = diagnose(node).incidents
    return incident


def test_a_task_that_waits_for_a_disk_is_blocked_io() -> None:
    verdict = only(hung(DISK)).verdict
    assert verdict.cause == "blocked-io"
    assert verdict.culprit is not None
    assert verdict.culprit.comm == "ip"


@pytest.mark.parametrize(
    ("trace", "wanted_for"),
    [
        ((*RTNL, "rtnetlink_rcv_msg"), "rtnl_lock"),
        (("__schedule", "schedule", "rwsem_down_write_slowpath", "cgroup_kn_lock_live"), ""),
        (("__schedule", "schedule", "__mutex_lock", "cgroup_lock_and_drain_offline"), ""),
    ],
)
def test_a_task_that_waits_for_a_lock_is_not(trace: tuple[str, ...], wanted_for: str) -> None:
    verdict = only(hung(trace)).verdict
    assert verdict.cause == "unknown"
    assert "blocked-io" not in [one.cause for one in only(hung(trace)).alternatives]
    assert f"ip is blocked, waiting for the lock of {wanted_for or trace[-1]}" in verdict.summary


def test_a_coredump_that_waits_for_its_threads_is_not_blocked_io() -> None:
    verdict = only(hung(("__schedule", "schedule", "coredump_task_exit", "do_exit"))).verdict
    assert (verdict.cause, verdict.summary.split(";")[0]) == (
        "unknown",
        "ip is blocked in coredump_task_exit",
    )


def test_who_seems_to_hold_the_mutex_is_said_where_the_kernel_says_it() -> None:
    owner = "INFO: task ip:77 is blocked on a mutex likely owned by task dhclient:9.\n"
    assert "which dhclient (pid 9) seems to hold" in only(hung(RTNL, more=owner)).verdict.summary


def test_the_kernels_own_word_is_enough() -> None:
    assert only(hung((), wait=" in I/O wait")).verdict.cause == "blocked-io"


def test_it_began_when_the_line_says() -> None:
    assert only(hung(DISK, seconds=2)).from_ns >= at(190 - 5)
    assert only(hung(DISK)).from_ns < at(190 - 120)
