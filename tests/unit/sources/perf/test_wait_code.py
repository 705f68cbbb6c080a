"""What the programs that time waits have in common, on the live kernel."""

import os
import signal
import time
from pathlib import Path

import pytest

from necroscope.model.units import NS_PER_MS
from necroscope.sources.perf import wait_layout as layout
from necroscope.sources.perf.bpf import MapValue
from necroscope.sources.perf.wait_probe import WaitProbe
from necroscope.sources.perf.wait_records import parse


def _spin_on(cpu: int) -> int:
    pid = os.fork()
    if pid == 0:
        os.sched_setaffinity(0, {cpu})
        while True:
            pass
    return pid


@pytest.mark.root
@pytest.mark.kernel
def test_one_that_was_woken_long_ago_and_has_run_since_does_not_wait_since_then() -> None:
    """It never slept by its own will, so what was noted at its wake-up is still in its place."""
    probe = WaitProbe(Path("/"), os.cpu_count() or 1, NS_PER_MS)
    sleepers = probe._held[1]
    assert isinstance(sleepers, MapValue)
    cpu = max(os.sched_getaffinity(0))
    pids = [_spin_on(cpu) for _ in range(3)]
    waited: list[int] = []
    until = time.monotonic() + 10
    try:
        while not waited and time.monotonic() < until:
            status = Path(f"/proc/{pids[0]}/status").read_text()
            switches = int(status.partition("\nvoluntary_ctxt_switches:")[2].split()[0])
            at = pids[0] % layout.SLEEPERS * layout.SLEEPER_BYTES
            sleepers.write_word(at, layout.AWAKE << 32 | pids[0])
            sleepers.write_word(at + 8, 1)
            sleepers.write_word(at + 24, switches)
            time.sleep(0.1)
            own = [parse(record) for record in probe.records()]
            waited += [wait.waited_ns for wait in own if wait.task.tid == pids[0]]
    finally:
        probe.close()
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    assert waited
    assert max(waited) < 10 * 10**9
