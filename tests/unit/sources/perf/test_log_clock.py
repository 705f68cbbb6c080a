"""The log's clock through a perf event of our own; without it the other clocks are still read."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from necroscope.errors import PermissionMissing
from necroscope.model.clocks import ClockReading
from necroscope.perf_abi.event_attr import EventAttr
from necroscope.sources.perf import event, log_clock
from necroscope.sources.perf.log_clock import LogClock

MS = 1_000_000


@pytest.mark.root
@pytest.mark.kernel
def test_the_logs_clock_runs_with_the_monotonic_clock() -> None:
    first = LogClock().read()
    time.sleep(0.05)
    second = LogClock().read()
    assert first.log_clock_ns is not None
    assert second.log_clock_ns is not None
    elapsed_ns = second.monotonic_ns - first.monotonic_ns
    assert abs((second.log_clock_ns - first.log_clock_ns) - elapsed_ns) < MS
    assert abs((second.realtime_ns - first.realtime_ns) - elapsed_ns) < MS
    assert abs((second.boottime_ns - first.boottime_ns) - elapsed_ns) < MS


@pytest.mark.root
@pytest.mark.kernel
def test_the_logs_clock_is_the_one_of_kernel_log_lines() -> None:
    before = LogClock().read().log_clock_ns
    with open("/dev/kmsg", "rb+", buffering=0) as log:
        os.set_blocking(log.fileno(), False)
        os.lseek(log.fileno(), 0, os.SEEK_END)
        log.write(b"<6>necroscope test: the time of this line is compared\n")
        line = os.read(log.fileno(), 8192)
        while b"the time of this line" not in line:
            line = os.read(log.fileno(), 8192)
    after = LogClock().read().log_clock_ns
    stamp_ns = int(line.split(b",")[2]) * 1000
    assert before is not None
    assert after is not None
    assert before - 2 * MS <= stamp_ns <= after + 2 * MS


@pytest.mark.root
@pytest.mark.kernel
def test_reading_changes_no_name_and_leaves_no_descriptor() -> None:
    before, descriptors = Path("/proc/self/comm").read_text(), len(os.listdir("/proc/self/fd"))
    LogClock().read()
    assert Path("/proc/self/comm").read_text() == before
    assert len(os.listdir("/proc/self/fd")) == descriptors


@pytest.mark.root
@pytest.mark.kernel
def test_no_event_of_a_task_is_opened_where_one_of_a_core_may_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An event of a task makes every switch of the machine dearer."""
    opened: list[int] = []

    def open_event(attr: EventAttr, pid: int, cpu: int) -> int:
        opened.append(pid)
        return event.open_event(attr, pid, cpu)

    monkeypatch.setattr(log_clock, "open_event", open_event)
    assert LogClock().read(with_log_clock=False).log_clock_ns is None
    assert opened == []
    assert LogClock().read().log_clock_ns is not None
    assert set(opened) == {event.EVERY_PROCESS}


@pytest.mark.kernel
def test_who_may_only_watch_itself_has_the_logs_clock_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def open_event(attr: EventAttr, pid: int, cpu: int) -> int:
        if pid == event.EVERY_PROCESS:
            raise PermissionMissing("refused")
        return event.open_event(attr, pid, cpu)

    monkeypatch.setattr(log_clock, "open_event", open_event)
    assert LogClock().read().log_clock_ns is not None


@pytest.mark.parametrize(
    "error", [PermissionMissing("refused"), OSError(38, "Function not implemented")]
)
def test_without_privilege_the_logs_clock_is_missing_and_nothing_fails(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def refused(*_: object, **__: object) -> int:
        raise error

    monkeypatch.setattr(log_clock, "open_event", refused)
    reading = LogClock().read()
    assert reading.log_clock_ns is None
    assert abs(reading.realtime_ns - time.time_ns()) < 10**10


def test_a_try_that_was_moved_to_another_core_is_not_taken_for_a_slow_one_that_was_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen, moved = (ClockReading(0, 0, 0, log_clock) for log_clock in (7, None))
    tries = iter(
        [log_clock._Try(seen, 3 * MS, was_moved=False), *[log_clock._Try(moved, 9, True)] * 4]
    )
    monkeypatch.setattr(log_clock, "_try_to_read", lambda **_: next(tries))
    assert LogClock().read() == seen


def test_a_pause_between_two_clocks_is_not_taken_for_a_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The recorder starves for 300 ms between reading monotonic and real time: the reading is taken
    again.
    """
    offset_ns = 10**18
    now_ns = 0

    def monotonic_ns() -> int:
        nonlocal now_ns
        now_ns += 100
        return now_ns

    pauses: Iterator[int] = iter([300 * MS, 0])

    def time_ns() -> int:
        nonlocal now_ns
        now_ns += next(pauses)
        return now_ns + offset_ns

    monkeypatch.setattr(log_clock.time, "monotonic_ns", monotonic_ns)
    monkeypatch.setattr(log_clock.time, "time_ns", time_ns)
    reading = LogClock().read(with_log_clock=False)
    assert abs(reading.realtime_ns - reading.monotonic_ns - offset_ns) < MS
