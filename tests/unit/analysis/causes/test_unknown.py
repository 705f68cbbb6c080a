"""What no mechanism explains is told as far as it is known."""

from tests.drawn_node import drawn_node

from necroscope.analysis.engine import diagnose

QUIET = "core 0: " + 60 * "." + "\ncore 1: " + 60 * "."


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


def test_a_core_that_was_held_is_told_first_and_the_line_is_evidence() -> None:
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
