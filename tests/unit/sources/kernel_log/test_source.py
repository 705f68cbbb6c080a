"""The kernel log as a source: rows, gaps, alarms, bounds, and which log is read."""

import os
import select
from collections.abc import Iterator
from pathlib import Path

import pytest

from necroscope.errors import SourceUnavailable
from necroscope.model.reading import Gap, Moment
from necroscope.model.tables import TABLES
from necroscope.model.units import NS_PER_S
from necroscope.sources.kernel_log import source
from necroscope.sources.kernel_log.line import LogLine
from necroscope.sources.kernel_log.source import LINES_PER_SECOND, KernelLog

KIND, BY_KERNEL, MESSAGE = (
    TABLES["events"].index_of(name) for name in ("kind", "by_kernel", "message")
)


class Scripted:
    """A log that holds what the test puts into it."""

    name = "scripted"
    settles_ns = 0

    def __init__(self) -> None:
        self.lines: list[LogLine] = []
        self.gaps: list[Gap] = []
        self.closed = False
        self.pipe = os.pipe()
        self.failure: SourceUnavailable | None = None

    def say(self, text: str, time_s: float = 0) -> None:
        self.lines.append(LogLine(int(time_s * NS_PER_S), len(self.lines), 3, 0, True, text))

    def fileno(self) -> int | None:
        return self.pipe[0]

    def read_lines(self, limit: int) -> list[LogLine]:
        if self.failure is not None and not self.lines:
            raise self.failure
        taken, self.lines = self.lines[:limit], self.lines[limit:]
        return taken

    def take_gaps(self, now_ns: int) -> list[Gap]:
        gaps, self.gaps = self.gaps, []
        return gaps

    def close(self) -> None:
        self.closed = True


class Clock:
    """Every look at it costs `step_ns`."""

    def __init__(self, step_ns: int = 0) -> None:
        self.now_ns, self.step_ns = 0, step_ns

    def __call__(self) -> int:
        self.now_ns += self.step_ns
        return self.now_ns


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Iterator[Scripted]:
    scripted = Scripted()
    monkeypatch.setattr(source, "open_log", lambda *_: scripted)
    yield scripted
    for end in scripted.pipe:
        os.close(end)


def kernel_log(clock: Clock | None = None) -> KernelLog:
    return KernelLog(Path("/nowhere"), lambda ns: ns, clock=clock or Clock())


def now(second: float) -> Moment:
    return Moment(int(second * NS_PER_S), int(second * NS_PER_S))


RESET = "ena 0000:00:05.0 eth0: Trigger reset is on"
DONE = "ena 0000:00:05.0: Device reset completed successfully"


def test_a_line_becomes_a_row_of_log_and_its_meaning_a_row_of_events(log: Scripted) -> None:
    kernel = kernel_log()
    assert kernel.read(now(0)).rows == {}
    log.say(RESET, 1)
    log.say(DONE, 2)
    reading = kernel.read(now(2))
    assert reading.rows["log"] == [(NS_PER_S, 0, 3, 0, RESET), (2 * NS_PER_S, 1, 3, 0, DONE)]
    (event,) = reading.rows["events"]
    assert len(event) == len(TABLES["events"].columns)
    assert (event[KIND], event[MESSAGE]) == ("nic_reset", RESET)


def test_an_alarm_comes_with_the_line_while_the_story_is_still_told(log: Scripted) -> None:
    kernel = kernel_log()
    kernel.read(now(0))
    log.say(RESET)
    reading = kernel.read(now(1))
    assert "events" not in reading.rows
    assert [(alarm.kind, alarm.device) for alarm in reading.alarms] == [("nic_reset", "eth0")]
    assert kernel.read(now(2)).alarms == []
    assert [row[KIND] for row in kernel.read(now(12)).rows["events"]] == ["nic_reset"]


def test_a_log_that_wakes_the_recorder_is_idle_unless_a_story_is_under_way(log: Scripted) -> None:
    kernel = kernel_log()
    kernel.read(now(1))
    assert kernel.idle_until_ns > now(2).monotonic_ns
    log.say(RESET, 2)
    kernel.read(now(2))
    assert kernel.idle_until_ns == 0
    assert kernel.read(now(100)).rows["events"]
    assert kernel.idle_until_ns > now(100).monotonic_ns
    log.failure = SourceUnavailable("gone")
    with pytest.raises(SourceUnavailable):
        kernel.read(now(101))
    assert kernel.idle_until_ns == 0


def test_a_log_that_wakes_nobody_is_never_idle(
    log: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "fileno", lambda: None)
    kernel = kernel_log()
    kernel.read(now(1))
    assert kernel.idle_until_ns == 0


def test_history_is_recorded_and_raises_no_alarm(log: Scripted) -> None:
    kernel = kernel_log()
    log.say(RESET)
    log.say(DONE)
    reading = kernel.read(now(1000))
    assert len(reading.rows["events"]) == 1
    assert len(reading.rows["log"]) == 2
    assert reading.alarms == []


def test_finish_tells_what_is_still_open(log: Scripted) -> None:
    kernel = kernel_log()
    kernel.read(now(0))
    log.say(RESET)
    assert [row[KIND] for row in kernel.finish(now(1)).rows["events"]] == ["nic_reset"]
    assert kernel.finish(now(2)).rows == {}


def test_more_lines_than_the_rate_are_counted_as_a_gap_but_all_are_understood(
    log: Scripted,
) -> None:
    kernel = kernel_log()
    kernel.read(now(0))
    for n in range(5000):
        log.say(f"chatter {n}", n)
    log.say("NVRM: Xid (PCI:0000:44:00): 79, GPU has fallen off the bus", 5000)
    reading = kernel.read(now(1))
    assert len(reading.rows["log"]) == LINES_PER_SECOND
    assert [row[KIND] for row in reading.rows["events"]] == ["gpu_xid"]
    (gap,) = reading.gaps
    assert (gap.table, gap.lost, gap.from_ns, gap.to_ns) == (
        "log",
        4001,
        1000 * NS_PER_S,
        5000 * NS_PER_S,
    )
    log.say("quiet")
    assert len(kernel.read(now(1.5)).gaps) == 1
    log.say("quiet")
    assert kernel.read(now(2)).rows["log"][0][-1] == "quiet"


def test_history_is_not_held_to_the_rate(log: Scripted) -> None:
    for n in range(5000):
        log.say(f"boot {n}")
    reading = kernel_log().read(now(0))
    assert (len(reading.rows["log"]), reading.gaps) == (5000, [])


def test_a_read_ends_when_its_time_is_up_and_the_next_goes_on(log: Scripted) -> None:
    kernel = kernel_log(Clock(step_ns=30_000_000))
    for n in range(1000):
        log.say(f"boot {n}")
    first = kernel.read(now(0)).rows["log"]
    assert 0 < len(first) < 1000
    rest = [row for _ in range(10) for row in kernel.read(now(1)).rows.get("log", [])]
    assert [row[-1] for row in first + rest] == [f"boot {n}" for n in range(1000)]


def test_gaps_of_the_reader_are_handed_on(log: Scripted) -> None:
    log.gaps = [Gap("log", 1, 2, "kernel log overwritten before it was read", lost=9)]
    assert [gap.lost for gap in kernel_log().read(now(0)).gaps] == [9]


def test_a_failure_is_raised_and_the_next_read_goes_on_with_the_same_log(log: Scripted) -> None:
    kernel = kernel_log()
    log.failure = SourceUnavailable("journalctl ended")
    with pytest.raises(SourceUnavailable):
        kernel.read(now(0))
    log.failure = None
    log.say("back")
    assert kernel.read(now(1)).rows["log"][0][-1] == "back"


def test_what_came_before_a_failure_is_kept(log: Scripted) -> None:
    kernel = kernel_log()
    log.say(RESET)
    log.failure = SourceUnavailable("journalctl ended")
    assert kernel.read(now(0)).rows["log"][0][-1] == RESET
    with pytest.raises(SourceUnavailable):
        kernel.read(now(1))
    assert [row[KIND] for row in kernel.finish(now(2)).rows["events"]] == ["nic_reset"]


def test_a_log_that_takes_its_time_to_find_its_history_raises_no_alarm_for_it(
    log: Scripted,
) -> None:
    log.settles_ns = 5 * NS_PER_S
    kernel = kernel_log()
    kernel.read(now(100))
    log.say(RESET, 1)
    assert kernel.read(now(101)).alarms == []
    kernel.read(now(106))
    log.say("ena 0000:00:06.0 eth1: Trigger reset is on", 106)
    assert [alarm.device for alarm in kernel.read(now(107)).alarms] == ["eth1"]


def test_history_that_comes_late_raises_no_alarm(log: Scripted) -> None:
    log.settles_ns = 5 * NS_PER_S
    kernel = kernel_log()
    kernel.read(now(100))
    kernel.read(now(108))
    log.say(RESET, 60)
    log.say("ena 0000:00:06.0 eth1: Trigger reset is on", 99)
    assert [alarm.device for alarm in kernel.read(now(109)).alarms] == ["eth1"]


def is_readable(kernel: KernelLog) -> bool:
    return bool(select.select([kernel.descriptor()], [], [], 0)[0])


def test_its_descriptor_is_readable_when_a_line_comes_also_from_a_reader_that_was_started_again(
    log: Scripted,
) -> None:
    kernel = kernel_log()
    kernel.read(now(0))
    assert not is_readable(kernel)
    os.write(log.pipe[1], b"x")
    assert is_readable(kernel)
    for end in log.pipe:
        os.close(end)
    assert not is_readable(kernel)
    log.pipe = os.pipe()
    os.write(log.pipe[1], b"x")
    kernel.read(now(1))
    assert is_readable(kernel)
    kernel.close()


def test_close_closes_the_log_and_may_be_called_twice(log: Scripted) -> None:
    kernel = kernel_log()
    kernel.read(now(0))
    kernel.close()
    kernel.close()
    assert log.closed


def test_without_any_log_the_hint_names_the_capability(tmp_path: Path) -> None:
    kernel = KernelLog(tmp_path, lambda ns: ns)
    with pytest.raises(SourceUnavailable) as caught:
        kernel.read(now(0))
    assert "cannot read the kernel log" in caught.value.facts
    assert "CAP_SYSLOG" in caught.value.hint
    assert "kernel.dmesg_restrict" in caught.value.hint


def test_without_kmsg_a_syslog_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "var/log").mkdir(parents=True)
    (tmp_path / "var/log/kern.log").write_text(
        f"2026-01-02T11:59:58Z host kernel: {RESET}\n2026-01-02T11:59:59Z host kernel: {DONE}\n"
    )
    kernel = KernelLog(tmp_path, lambda ns: ns)
    reading = kernel.read(now(0))
    assert [row[KIND] for row in reading.rows["events"]] == ["nic_reset"]
    kernel.close()


@pytest.mark.kernel
@pytest.mark.root
def test_an_event_that_user_space_wrote_to_the_live_log_is_marked_so() -> None:
    if os.geteuid() != 0 or not os.access("/dev/kmsg", os.R_OK | os.W_OK):
        pytest.skip("needs root and /dev/kmsg")
    kernel = KernelLog(Path("/"), lambda ns: ns)
    while not kernel._caught_up:
        kernel.read(now(0))
    words = f"audit: backlog limit exceeded, says necroscope's test {os.getpid()}: no error"
    Path("/dev/kmsg").write_text(f"<6>{words}\n")
    reading = kernel.read(now(1))
    mine = [row for row in reading.rows["events"] if row[MESSAGE] == words]
    assert [(row[KIND], row[BY_KERNEL]) for row in mine] == [("audit_overflow", False)]
    kernel.close()
