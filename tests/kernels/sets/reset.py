"""A reset by a real driver: its poll waits behind a kernel section of seconds on its core, its
transmit queue fills, time is up.

An application holds thousands of timers on core 1. An agent reads /proc/timer_list there, which
takes the kernel seconds without a point to yield (`necroscope.lab.timer_list` says why). The
network device's interrupt comes to core 1, too; another core sends. Where softirqs wait for
ksoftirqd, and ksoftirqd for the agent's system call, nobody takes finished packets off the queue;
after five seconds the network core's watchdog calls the driver, which resets the device. No line is
ours. Where softirqs run at interrupt exit whoever waits, the same agent harms nobody.
"""

import subprocess
import sys
import threading
import time
from pathlib import Path

from tests.kernels.sets import starving, wire
from tests.kernels.sets.looking import say

HUB = "session-hub"
RUNS, RUNS_WITHOUT = 5, 1
_HELD = Path("/run/held")
_FIRST, _STEPS_S, _TRIES = 1500, (1.2, 4.0), 3
_FILES = "LimitNOFILE=200000\nWorkingDirectory=/job\n"


def inside(out: Path, runs: int) -> None:
    wire.own_core()
    wire.bring_up(starving.CORE)
    # Where nothing is to be reset the core may not be held at all, however long the call takes.
    count = _timers_for(
        starving.HOLD_S, longest_hold_s.__name__ if runs == RUNS else longest_call_s.__name__
    )
    python = f"{sys.executable} -c 'from tests.kernels.sets import reset; reset.%s'"
    wire.take_unit(HUB, python % f"hold({count})", cpu=starving.CORE, extra=_FILES)
    wire.take_unit(starving.AGENT, python % "read_once()", cpu=starving.CORE, extra=_FILES)
    wire.systemctl("start", HUB)
    while not _HELD.exists():
        time.sleep(0.2)
    starving.incidents(out, runs, timers=count)


def _timers_for(seconds: float, measured: str) -> int:
    """It grows with the square of the number of timers, and faster once they outgrow a cache: asked
    step by step.

    The shortest of several counts: where the host is busy it seems longer, and the next one may
    not.
    """
    count = _FIRST
    for aim_s in (*_STEPS_S, seconds):
        took_s = min(_measured(measured, count) for _ in range(_TRIES))
        count = int(count * (aim_s / took_s) ** 0.5)
    return count


def _measured(what: str, count: int) -> float:
    measure = f"from tests.kernels.sets import reset; print(reset.{what}({count}))"
    limited = [
        "prlimit",
        "--nofile=200000",
        "taskset",
        "--cpu-list",
        str(starving.CORE),
        sys.executable,
        "-c",
        measure,
    ]
    took_s = float(subprocess.run(limited, stdout=subprocess.PIPE, check=True).stdout)
    say(f"{what} with {count} timers: {took_s:.2f} s")
    return took_s


def longest_call_s(count: int) -> float:
    """Of a read with this many timers there."""
    from necroscope.lab import timer_list

    timers = timer_list.arm(count)
    return timer_list.read() if timers else 0.0


def longest_hold_s(count: int) -> float:
    """How long another thread on the core got no turn during a read: less than the read where the
    kernel yields in between.

    5.10 yields whenever seq_file asks for a larger buffer, and holds the core for a tenth of a
    read.
    """
    from necroscope.lab import timer_list

    timers = timer_list.arm(count)
    reader = threading.Thread(target=timer_list.read)
    reader.start()
    longest_s, last_s = 0.0, time.monotonic()
    while reader.is_alive():
        time.sleep(0.005)
        now_s = time.monotonic()
        longest_s, last_s = max(longest_s, now_s - last_s), now_s
    return longest_s if timers else 0.0


def hold(count: int) -> None:
    """An application with that many sessions, each with its time-out."""
    from necroscope.lab import timer_list

    starving.call_oneself(HUB)
    timer_list.arm(count)
    _HELD.touch()
    time.sleep(1 << 20)


def read_once() -> None:
    from necroscope.lab import timer_list

    starving.call_oneself(starving.AGENT)
    timer_list.read()


def verify(out: Path, *, softirqs_wait: bool) -> str:
    if softirqs_wait:
        return starving.verify_resets(out, RUNS, "irq-core-collision")
    return starving.verify_no_reset(out, RUNS_WITHOUT)


if __name__ == "__main__":
    inside(Path(sys.argv[1]), int(sys.argv[2]))
