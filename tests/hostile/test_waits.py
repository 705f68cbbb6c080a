"""Programs of `nobody` that wait, stop or hold something so that another is named as the cause."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.hostile.test_jobs import NOBODY, PYTHON

from necroscope.sources.procfs.wait_holders import STOPPED, WaitHolders

pytestmark = [pytest.mark.kernel, pytest.mark.root]

# An orphan that makes its new parent, whoever takes orphans in, its tracer, and stops.
STOPS_UNDER_ITS_PARENT = """
import ctypes, os, signal
if os.fork():
    os._exit(0)
while os.getppid() == int(os.environ["STARTER"]):
    pass
print(os.getpid(), flush=True)
ctypes.CDLL(None).ptrace(0, 0, 0, 0)
os.kill(os.getpid(), signal.SIGSTOP)
"""
# A program that traces its own child, as gdb and strace do.
STOPS_ITS_CHILD = """
import ctypes, os, signal
pid = os.fork()
if pid == 0:
    ctypes.CDLL(None).ptrace(0, 0, 0, 0)
    os.kill(os.getpid(), signal.SIGSTOP)
os.waitpid(pid, os.WUNTRACED)
print(pid, flush=True)
signal.pause()
"""


def run_as_nobody(program: str) -> "subprocess.Popen[str]":
    if not Path(PYTHON).exists():
        pytest.skip(f"{PYTHON} is not installed")
    words = ["sh", "-c", 'STARTER=$$ exec "$@"', "sh", PYTHON, "-c", program]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True, user=NOBODY, group=NOBODY)


@pytest.fixture
def stopped(request: pytest.FixtureRequest) -> Iterator[int]:
    """The pid of a process that is stopped and traced."""
    with run_as_nobody(request.param) as starter:
        assert starter.stdout is not None
        pid = int(starter.stdout.readline())
        try:
            deadline = time.monotonic() + 10
            while b"\nState:\tt" not in Path(f"/proc/{pid}/status").read_bytes():
                assert time.monotonic() < deadline
                time.sleep(0.01)
            yield pid
        finally:
            os.kill(pid, signal.SIGKILL)
            starter.kill()


def status(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


@pytest.mark.parametrize("stopped", [STOPS_UNDER_ITS_PARENT], indirect=True)
def test_an_orphan_cannot_make_process_1_its_debugger(stopped: int) -> None:
    tracer = status(stopped)["TracerPid"]
    # So says the kernel, and process 1 did nothing.
    assert tracer == status(stopped)["PPid"]
    assert status(int(tracer))["Uid"] != status(stopped)["Uid"]
    assert WaitHolders(Path("/proc")).find(STOPPED, stopped, None, 10**10) is None


@pytest.mark.parametrize("stopped", [STOPS_ITS_CHILD], indirect=True)
def test_a_debugger_of_the_same_user_is_still_named(stopped: int) -> None:
    found = WaitHolders(Path("/proc")).find(STOPPED, stopped, None, 10**10)
    assert found is not None
    assert str(found.pid) == status(stopped)["TracerPid"]
