"""What is done to a job, with its truth: lab faults on the core of one member, and controls for
which no machine is to blame.
"""

import contextlib
import ctypes
import os
import random
import string
import subprocess
import sys
import time
from collections.abc import Iterator

from tests.job_cluster.cluster import CPU, end_session

PR_SET_NAME = 15
LONGEST_S = 40.0


def invent(seed: random.Random) -> str:
    return "app" + "".join(seed.choices(string.ascii_lowercase, k=5))


def hog(name: str, core: str, policy: str, priority: str, threads: str) -> None:
    """Ends by itself: a machine must not be held for longer than a run takes."""
    os.sched_setaffinity(0, {int(core)})
    ctypes.CDLL(None).prctl(PR_SET_NAME, name.encode(), 0, 0, 0)
    until_s = time.monotonic() + LONGEST_S
    for _ in range(int(threads) - 1):
        if not os.fork():
            break
    if policy in ("fifo", "rr"):
        number = os.SCHED_FIFO if policy == "fifo" else os.SCHED_RR
        os.sched_setscheduler(0, number, os.sched_param(int(priority)))
    else:
        os.setpriority(os.PRIO_PROCESS, 0, int(priority))
    while time.monotonic() < until_s:
        pass


@contextlib.contextmanager
def real_time_hog(seed: random.Random, core: int, policy: str) -> Iterator[str]:
    name = invent(seed)
    process = _start_hog(name, core, policy, seed.randrange(2, 50), 1)
    try:
        yield name
    finally:
        end_session(process)


@contextlib.contextmanager
def neighbours(seed: random.Random, core: int) -> Iterator[str]:
    """Many of one program, ahead of all others by their nice value."""
    name = invent(seed)
    process = _start_hog(name, core, "other", -15, seed.randrange(4, 8))
    try:
        yield name
    finally:
        end_session(process)


@contextlib.contextmanager
def quota(pid: int, name: str) -> Iterator[str]:
    """One hundredth of a core, for one process."""
    group = CPU / name
    group.mkdir()
    try:
        (group / "cpu.cfs_period_us").write_text("100000")
        (group / "cpu.cfs_quota_us").write_text("1000")
        (group / "cgroup.procs").write_text(str(pid))
        yield name
    finally:
        with contextlib.suppress(OSError):
            (group / "cpu.cfs_quota_us").write_text("-1")
        for _ in range(50):
            with contextlib.suppress(OSError):
                for line in (group / "cgroup.procs").read_text().split():
                    (CPU / "cgroup.procs").write_text(line)
                group.rmdir()
                break
            time.sleep(0.1)


def _start_hog(
    name: str, core: int, policy: str, priority: int, threads: int
) -> subprocess.Popen[bytes]:
    words = [name, str(core), policy, str(priority), str(threads)]
    return subprocess.Popen(
        [sys.executable, "-m", "tests.job_cluster.faults", *words], start_new_session=True
    )


if __name__ == "__main__":
    hog(*sys.argv[1:])
