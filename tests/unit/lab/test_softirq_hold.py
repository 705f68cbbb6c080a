"""Softirqs are held for as long as was asked, also where others want the core."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from necroscope.lab.softirq_hold import SoftirqHold

pytestmark = [pytest.mark.root, pytest.mark.kernel]


@pytest.fixture
def rivals() -> Iterator[int]:
    """A core with three others on it, each in a session of its own so that autogroups give them
    their share.
    """
    allowed = os.sched_getaffinity(0)
    core = max(allowed)
    program = (
        f"import os; os.setsid(); os.sched_setaffinity(0, {{{core}}}); print(flush=True)\nwhile"
        " True: pass"
    )
    started = [
        subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) for _ in range(3)
    ]
    for rival in started:
        assert rival.stdout is not None
        rival.stdout.readline()
    os.sched_setaffinity(0, {core})
    yield core
    os.sched_setaffinity(0, allowed)
    for rival in started:
        rival.kill()
        rival.communicate()


def test_a_hold_is_as_long_as_asked_on_a_core_that_others_want(rivals: int) -> None:
    with SoftirqHold() as softirqs:
        before_s = time.thread_time()
        held_s = softirqs.hold(0.4)
        # By another clock than its own: a hold is all CPU time.
        assert time.thread_time() - before_s == pytest.approx(0.4, rel=0.35)
    assert held_s == pytest.approx(0.4, rel=0.35)
