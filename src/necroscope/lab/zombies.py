"""Memory cgroups that are removed but not released: each is pinned by one page of a file that was
written while it lived.
"""

import contextlib
import os
import secrets
import signal
import time
from pathlib import Path
from types import FrameType
from typing import Final

from necroscope.lab.actor import Actor
from necroscope.lab.cgroup import mount_points
from necroscope.lab.crash_loop import CrashLoop
from necroscope.lab.scenario import CannotProvoke
from necroscope.lab.stage import Stage
from necroscope.model.units import NS_PER_S

_LEAK_S: Final = 120.0


def speed_up(stage: Stage, loop: CrashLoop, count: int) -> None:
    """Months of a crash loop in seconds: the same leak, in the same place, without starting the
    container for each.
    """
    parent = mount_points(("memory",))["memory"] / loop.parent
    stage.start(leak, str(parent), str(loop.state), count, comm=stage.invent("tool")).wait(_LEAK_S)
    stage.emulate(
        f"{count} of the leaked cgroups were made directly, as the crash loop makes them but faster"
    )


def leak(parent: str, files: str, count: int) -> None:
    """Live in a new cgroup just long enough to write a page into a file that stays, then leave and
    remove it.
    """
    pid, block = str(os.getpid()).encode(), bytes(4096)
    home = os.open(Path(parent).parent / "cgroup.procs", os.O_WRONLY)
    for _ in range(count):
        name = secrets.token_hex(32)
        directory = f"{parent}/libpod-{name}"
        os.mkdir(directory)
        _write(f"{directory}/cgroup.procs", pid)
        _write(f"{files}/{name}", block)
        os.write(home, pid)
        os.rmdir(directory)


def _write(path: str, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    os.write(descriptor, data)
    os.close(descriptor)


def start_walker(stage: Stage, loop: CrashLoop, log: Path) -> Actor:
    """An agent that has the kernel walk all cgroups below the container's parent, again and
    again.
    """
    directory = mount_points(("memory",))["memory"] / loop.parent
    asks = [(directory / "memory.force_empty", "1"), (directory / "memory.reclaim", "1G")]
    ask = next(((str(path), value) for path, value in asks if path.exists()), None)
    if ask is None:
        raise CannotProvoke("this kernel has neither memory.force_empty nor memory.reclaim")
    patience_s, pause_s = stage.random.uniform(2.0, 4.5), stage.random.uniform(1.5, 4.0)
    return stage.start(
        walk,
        *ask,
        patience_s,
        pause_s,
        str(log),
        comm=stage.invent("agent"),
        cpu=stage.core,
        nice=-10,
    )


def walk(file: str, value: str, patience_s: float, pause_s: float, log: str) -> None:
    """Writes down when each walk began and ended: when all was tried, or at the first chance after
    the agent lost its patience.

    As long as the container makes new pages there is always something to reclaim, and the kernel
    would go on forever.
    """

    def give_up(_number: int, _frame: FrameType | None) -> None:
        raise TimeoutError

    signal.signal(signal.SIGALRM, give_up)
    ask = os.open(file, os.O_WRONLY)
    with Path(log).open("w", encoding="ascii") as walks:
        while True:
            print(time.time_ns(), end=" ", file=walks, flush=True)
            # The timers that count CPU time send their signal only on the way back to user space:
            # too late here. This one bounds the life of the process (`launch.py`), and gets the
            # rest of it back.
            life_s, _ = signal.setitimer(signal.ITIMER_REAL, patience_s)
            with contextlib.suppress(OSError):
                os.write(ask, value.encode())  # a buffered file would write again what was given up
            signal.setitimer(signal.ITIMER_REAL, life_s)
            print(time.time_ns(), file=walks, flush=True)
            time.sleep(pause_s)


def read_walks_s(log: Path, end_ns: int) -> list[float]:
    """How long each took; the last one may have been under way at the end."""
    times_ns = [int(word) for word in log.read_text().split()] + [end_ns]
    return [(times_ns[i + 1] - times_ns[i]) / NS_PER_S for i in range(0, len(times_ns) - 1, 2)]


def read_statistics(file: str, pause_s: float) -> None:
    """What kubelet does all the time: on kernels since 5.x the sums are kept, and nothing is
    walked.
    """
    while True:
        Path(file).read_text()
        time.sleep(pause_s)
