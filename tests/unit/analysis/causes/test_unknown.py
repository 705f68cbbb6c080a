"""What no mechanism explains is reported as far as it is known."""

import pytest
from tests.drawn_node import drawn_node
from tests.drawn_waits import by, wait

from necroscope.analysis.engine import diagnose

QUIET = "core 0: " + 60 * "." + "\ncore 1: " + 60 * "."

IDLE = """
    core 0:  ..............................
    core 1:  ..............................
    """


def test_the_line_leads_where_only_the_log_tells_of_it() -> None:
    line = "watchdog: BUG: soft lockup - CPU#1 stuck for 23s! [kworker/u4:1:88]"
    node = drawn_node(QUIET).event(
        45, "soft_lockup", line, cpu=1, comm="kworker/u4:1", pid=88, fields='{"stuck_s": 23}'
    )
    (incident,) = diagnose(node).incidents
    assert (incident.core, incident.verdict.cause) == (1, "unknown")
    assert incident.verdict.summary == f"{line}; no known mechanism explains it"
    assert incident.verdict.culprit is not None
    assert (incident.verdict.culprit.comm, incident.verdict.culprit.pid) == ("kworker/u4:1", 88)


def test_who_merely_was_on_a_core_is_not_accused_by_a_line_that_names_nobody() -> None:
    node = drawn_node(QUIET).event(
        45, "nvme_timeout", "nvme nvme0: I/O 12 QID 3 timeout, aborting", device="nvme0"
    )
    (incident,) = diagnose(node).incidents
    assert incident.verdict.summary.startswith("nvme nvme0: I/O 12 QID 3 timeout, aborting")
    assert incident.verdict.culprit is not None
    assert incident.verdict.culprit.comm is None


def test_a_core_that_was_held_is_reported_first_and_the_line_is_evidence() -> None:
    node = drawn_node(
        """
        core 0:  ..............................
        core 1:  ...............xxxxxxxx.......
        x: system  odd[6]  /  read > ksys_read, odd_one
        """
    ).event(22, "soft_lockup", "watchdog: BUG: soft lockup - CPU#1 stuck for 23s!", cpu=1)
    (incident,) = diagnose(node).incidents
    assert incident.verdict.summary.startswith("core 1 was held in system mode by odd in odd_one")
    assert any("soft lockup" in item.text for item in incident.verdict.evidence)


def test_a_tracer_that_is_on_is_to_be_acted_on_with_who_reads_it() -> None:
    node = drawn_node(
        """
        core 0:  ...............t.t.t.t........
        core 1:  ...............xxxxxxxx.......
        t: system  debug-session[8]  /user.slice  read > ksys_read, vfs_read, tracing_read_pipe
        x: system  app[6]  /pods/a  read > ksys_read, vfs_read, ftrace_caller, function_trace_call
        """
    )
    verdict = next(one.verdict for one in diagnose(node).incidents if one.core == 1)
    assert verdict.cause == "unknown"
    assert verdict.origin is not None
    assert verdict.origin.name == "debug-session"
    assert any("a tracer is on" in item.text for item in verdict.evidence)


def test_a_tracer_that_nobody_is_seen_to_read_is_a_setting() -> None:
    node = drawn_node(
        """
        core 0:  ..............................
        core 1:  ...............xxxxxxxx.......
        x: system  app[6]  /pods/a  read > ksys_read, vfs_read, ftrace_caller, function_trace_call
        """
    )
    (incident,) = diagnose(node).incidents
    assert incident.verdict.origin is not None
    assert (incident.verdict.origin.kind, incident.verdict.origin.name) == (
        "setting",
        "kernel tracing",
    )


def test_of_processes_that_do_not_last_who_starts_them_is_to_be_acted_on() -> None:
    short = "\n".join(
        f"x: system  probe[{pid}]  /pods/a  read > ksys_read, odd_one" for pid in range(100, 140)
    )
    node = drawn_node(
        f"""
        core 0:  ..............p.p.p.p.........
        core 1:  ...............xxxxxxxx.......
        p: system  supervisor[5]  /pods/a  fork > kernel_clone, copy_process
        {short}
        """
    )
    verdict = next(one.verdict for one in diagnose(node).incidents if one.core == 1)
    assert verdict.cause == "unknown"
    assert verdict.culprit is not None
    assert verdict.culprit.comm == "probe"
    assert verdict.origin is not None
    assert verdict.origin.name == "supervisor"
    assert any("supervisor starts processes" in item.text for item in verdict.evidence)


def test_who_was_stopped_while_a_task_stood_is_told_and_nobody_is_accused() -> None:
    node = wait(drawn_node(IDLE), 10, 8.0, "webapp", 71, stack="some_driver_wait", is_open=True)
    wait(node, 10.1, 7.8, "daemon", 80, kind="stopped")
    (incident,) = diagnose(node).incidents
    verdict = incident.verdict
    assert verdict.cause == "unknown"
    assert verdict.origin is None
    assert any("meanwhile daemon[80] did not run" in item.text for item in verdict.evidence)


def test_the_same_unexplained_wait_again_and_again_is_an_incident() -> None:
    node = drawn_node(IDLE)
    for turn in range(4):
        wait(node, 5 + 4 * turn, 3.0, "db", 71, stack="folio_wait_writeback;do_fsync")
    (incident,) = diagnose(node).incidents
    assert "db[71] waited 3.00 s for dirty pages to be written" in incident.verdict.summary
    once = wait(drawn_node(IDLE), 5, 3.0, "db", 71, stack="folio_wait_writeback;do_fsync")
    assert not diagnose(once).incidents


def test_who_waited_for_a_held_core_is_in_the_first_sentence() -> None:
    node = drawn_node(
        """
        core 0:  ..............................
        core 1:  ..........bcbcbcbcbcbc........
        b: user  batch[81]  /a  main
        c: user  other[82]  /a  main
        """
    )
    wait(node, 10, 11.5, "webapp", 71)
    (incident,) = diagnose(node).incidents
    assert "webapp waited up to 11.5 s for it" in incident.verdict.summary


HELD = """
    core 0:  ..............................
    core 1:  ........bbbbbbbbbbbbbbbb......
    b: user  burner[90]  /app  main, burn
    b: user  burner[91]  /app  main, burn
    """


def test_a_task_that_gets_no_turn_behind_ordinary_user_code_has_too_little_weight() -> None:
    node = wait(drawn_node(HELD), 8.5, 13.0, "report", 71, **by("burner", 90, policy="other"))
    (incident,) = diagnose(node).incidents
    verdict = incident.verdict
    assert verdict.cause == "unknown"
    assert "report waited up to 13.0 s for it" in verdict.summary
    assert any("report weighs far less" in item.text for item in verdict.evidence)
    assert "cpu.shares" in verdict.fix[0]


@pytest.mark.parametrize(
    ("picture", "policy"),
    [(HELD, "fifo"), (HELD.replace("user", "system").replace("main, burn", "> odd"), "other")],
)
def test_who_waits_behind_a_real_time_task_or_the_kernel_is_not_short_of_weight(
    picture: str, policy: str
) -> None:
    node = wait(drawn_node(picture), 8.5, 13.0, "report", 71, **by("burner", 90, policy=policy))
    for incident in diagnose(node).incidents:
        assert not any("weighs far less" in item.text for item in incident.verdict.evidence)


def test_a_task_that_slept_for_a_device_is_told_to_look_at_the_limits_of_its_cgroup() -> None:
    node = wait(drawn_node(IDLE), 12, 12.0, "writer", 71, stack="__iomap_dio_rw;iomap_dio_rw")
    node.every_second("softirqs", range(1, 12), cpu=0, block=100)
    node.every_second("softirqs", range(12, 26), cpu=0, block=20_000)
    (incident,) = diagnose(node).incidents
    assert "blkio.throttle" in incident.verdict.fix[0]
