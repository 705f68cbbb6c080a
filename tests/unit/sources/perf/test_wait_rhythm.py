"""Rhythms, stops and page faults on the live kernel: who is late, and who never is."""

import os
import signal
import time
from pathlib import Path

import pytest
from tests.injected_waits import keeping_a_rhythm
from tests.page_fault_server import stand_in_a_page_fault

from necroscope.model.units import NS_PER_MS
from necroscope.sources.perf.wait_probe import WaitProbe
from necroscope.sources.perf.wait_records import WaitRecord, parse


@pytest.mark.root
@pytest.mark.kernel
def test_a_thread_that_keeps_a_rhythm_and_is_stopped_is_late_and_stopped() -> None:
    """Looks come faster here than in a recording, and so does the rhythm."""
    probe = WaitProbe(Path("/"), len(os.sched_getaffinity(0)), 20 * NS_PER_MS)
    found: dict[str, list[WaitRecord]] = {}

    def look(times: int, pause_s: float) -> None:
        for _ in range(times):
            time.sleep(pause_s)
            for record in map(parse, probe.open_waits()):
                if record.task.tid == pid:
                    found.setdefault(record.kind, []).append(record)

    try:
        with keeping_a_rhythm(0.1) as pid:
            look(10, 0.5)
            assert "late" not in found
            os.kill(pid, signal.SIGSTOP)
            look(4, 0.3)
            os.kill(pid, signal.SIGCONT)
            look(1, 0.3)
    finally:
        probe.close()
    late, stopped = found["late"], found["stopped"]
    assert 95 * NS_PER_MS <= late[0].address <= 110 * NS_PER_MS
    assert late[0].other_ran_ns == 0  # it had not come yet
    assert late[-1].other_ran_ns > 0
    assert late[-1].waited_ns > 500 * NS_PER_MS
    assert stopped[-1].waited_ns >= 250 * NS_PER_MS


@pytest.mark.root
@pytest.mark.kernel
def test_a_thread_without_a_rhythm_is_never_late() -> None:
    probe = WaitProbe(Path("/"), len(os.sched_getaffinity(0)), 20 * NS_PER_MS)
    read_end, write_end = os.pipe()
    server = os.fork()
    if server == 0:
        while os.read(read_end, 1):
            pass
    try:
        for beats in (1, 9, 2, 14, 4, 1, 7, 3, 11, 2, 0, 0, 0):
            for _ in range(beats):
                os.write(write_end, b"x")
                time.sleep(0.002)
            time.sleep(0.1)
            late = [one for one in map(parse, probe.open_waits()) if one.kind == "late"]
            assert server not in [one.task.tid for one in late]
    finally:
        os.kill(server, signal.SIGKILL)
        os.waitpid(server, 0)
        os.close(read_end)
        os.close(write_end)
        probe.close()


@pytest.mark.root
@pytest.mark.kernel
def test_a_page_fault_that_another_answers_late_is_a_wait() -> None:
    """It is an interruptible sleep, as an idle one, but outside of any system call."""
    probe = WaitProbe(Path("/"), len(os.sched_getaffinity(0)), 20 * NS_PER_MS)
    if not probe.sees_calls:
        probe.close()
        pytest.skip("this kernel does not tell in which system call a task sleeps (5.15 does)")
    try:
        pid = stand_in_a_page_fault(0.15)
        waits = [one for one in map(parse, probe.records()) if one.task.tid == pid]
    finally:
        probe.close()
    longest = max(waits, key=lambda one: one.waited_ns)
    assert (longest.kind, longest.waited_ns > 100 * NS_PER_MS) == ("blocked", True)
