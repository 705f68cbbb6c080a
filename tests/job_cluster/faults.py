"""What is done to a job, with its truth: things that hold the core, a file or the network of one
member. Each ends by itself, and gives the names of which one must be in the answer.
"""

import contextlib
import ctypes
import fcntl
import mmap
import os
import random
import signal
import string
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tests.job_cluster.cluster import CPU, FAULTS, MEMORY, Node, end_session

from necroscope.lab import fuse_server

PR_SET_NAME = 15
LONGEST_S = 40.0
SEMAPHORES = 20_000
NEIGHBOUR_BYTES = 96 << 20
_MOUNT_S = 20.0


def invent(seed: random.Random) -> str:
    return "app" + "".join(seed.choices(string.ascii_lowercase, k=5))


def hog(core: str, policy: str, priority: str, threads: str) -> None:
    """Ends by itself: a machine must not be held for longer than a run takes."""
    _spread(int(core), int(threads))
    if policy in ("fifo", "rr"):
        number = os.SCHED_FIFO if policy == "fifo" else os.SCHED_RR
        os.sched_setscheduler(0, number, os.sched_param(int(priority)))
    else:
        os.setpriority(os.PRIO_PROCESS, 0, int(priority))
    until_s = time.monotonic() + LONGEST_S
    while time.monotonic() < until_s:
        pass


def walk(core: str, threads: str) -> None:
    """Reads a list of the kernel to its end, again and again; it is started in an IPC namespace of
    its own, which takes the semaphores with it.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    for _ in range(SEMAPHORES):
        if libc.semget(0, 1, 0o600) < 0:
            raise OSError(ctypes.get_errno(), "cannot make a semaphore")
    _spread(int(core), int(threads))
    os.setpriority(os.PRIO_PROCESS, 0, -20)
    until_s = time.monotonic() + LONGEST_S
    while time.monotonic() < until_s:
        with open("/proc/sysvipc/sem", "rb", buffering=0) as file:
            while file.read(1 << 20):
                pass


def reclaim(core: str, threads: str, group: str, path: str) -> None:
    """At the memory limit of its cgroup: streams through a file that is larger than what is
    left.
    """
    Path(group, "cgroup.procs").write_text("0")
    with open(path, "wb") as file:
        file.truncate(4 << 30)
    _spread(int(core), int(threads))
    os.setpriority(os.PRIO_PROCESS, 0, -20)
    private = mmap.mmap(-1, NEIGHBOUR_BYTES * 3 // 4 // int(threads))
    for offset in range(0, len(private), mmap.PAGESIZE):
        private[offset] = 1
    until_s, buffer = time.monotonic() + LONGEST_S, bytearray(1 << 20)
    with open(path, "rb", buffering=0) as file:
        while time.monotonic() < until_s:
            if not file.readinto(buffer):
                file.seek(0)


def lock(path: str) -> None:
    """Has a lock on a file, and does not give it back."""
    fcntl.flock(os.open(path, os.O_RDWR | os.O_CREAT), fcntl.LOCK_EX)
    time.sleep(LONGEST_S)


def serve(source: str, path: str) -> None:
    signal.alarm(int(LONGEST_S) * 2)
    fuse_server.serve(source, path)


def _spread(core: int, processes: int) -> None:
    """Several processes on one core."""
    os.sched_setaffinity(0, {core})
    for _ in range(processes - 1):
        if not os.fork():
            break


@contextlib.contextmanager
def started(name: str, body: str, *words: str, prefix: tuple[str, ...] = ()) -> Iterator[int]:
    """A process outside of all nodes, by that name."""
    command = [*prefix, sys.executable, "-m", "tests.job_cluster.faults", name, body, *words]
    process = subprocess.Popen(command, start_new_session=True)
    try:
        yield process.pid
    finally:
        end_session(process)


@contextlib.contextmanager
def throttled(node: Node) -> Iterator[None]:
    """A hundredth of a core for all members of a node, as the limit of a pod is set."""
    quota, period = node.cpu / "cpu.cfs_quota_us", node.cpu / "cpu.cfs_period_us"
    period.write_text("100000")
    quota.write_text("1000")
    try:
        yield
    finally:
        quota.write_text("-1")


@contextlib.contextmanager
def limited_group(name: str) -> Iterator[Path]:
    """A memory cgroup with a limit."""
    group = MEMORY / name
    group.mkdir()
    try:
        (group / "memory.limit_in_bytes").write_text(str(NEIGHBOUR_BYTES))
        yield group
    finally:
        for _ in range(50):
            with contextlib.suppress(OSError):
                group.rmdir()
                break
            time.sleep(0.1)


@contextlib.contextmanager
def link_down(node: Node) -> Iterator[None]:
    words = ["ip", "-n", node.name, "link", "set", "eth0"]
    subprocess.run([*words, "down"], check=True)
    try:
        yield
    finally:
        subprocess.run([*words, "up"], check=True)


@contextlib.contextmanager
def mounted(name: str, path: Path) -> Iterator[int]:
    """A file system whose server can stop answering; gives the server's pid."""
    path.mkdir(exist_ok=True)
    with started(name, "serve", f"{name}:/data", str(path)) as pid:
        end_s = time.monotonic() + _MOUNT_S
        while not os.path.ismount(path):
            if time.monotonic() > end_s:
                raise RuntimeError("the file system was not mounted")
            time.sleep(0.05)
        try:
            yield pid
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGUSR2)
            subprocess.run(["umount", "--lazy", str(path)], check=False, capture_output=True)


def main(name: str, body: str, *words: str) -> None:
    # With CONFIG_RT_GROUP_SCHED a group of its own has no real-time share.
    is_real_time = body == "hog" and words[1] in ("fifo", "rr")
    (CPU / ("" if is_real_time else FAULTS) / "cgroup.procs").write_text("0")
    ctypes.CDLL(None).prctl(PR_SET_NAME, name.encode(), 0, 0, 0)
    {"hog": hog, "walk": walk, "reclaim": reclaim, "lock": lock, "serve": serve}[body](*words)


if __name__ == "__main__":
    main(*sys.argv[1:])
