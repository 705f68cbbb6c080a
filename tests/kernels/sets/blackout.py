"""A reset by a real driver because an agent keeps softirqs off on the core of the poll.

The agent runs a BPF program that only loops, around which the kernel itself holds
local_bh_disable() (`lab.softirq_hold`). That is also a system call which does not yield: where
softirqs wait for ksoftirqd, and ksoftirqd for that call, the diagnosis tells it as that, and
nothing in the tables tells the two apart.
"""

import sys
from pathlib import Path

from tests.kernels.sets import starving, wire

RUNS = 5


def inside(out: Path) -> None:
    wire.own_core()
    wire.bring_up(starving.CORE)
    command = (
        f"{sys.executable} -c 'from tests.kernels.sets import blackout; blackout.hold_softirqs()'"
    )
    wire.take_unit(starving.AGENT, command, cpu=starving.CORE, extra="WorkingDirectory=/job\n")
    starving.incidents(out, RUNS)


def hold_softirqs() -> None:
    from necroscope.lab.softirq_hold import SoftirqHold

    starving.call_oneself(starving.AGENT)
    with SoftirqHold(longest_s=starving.HOLD_S) as softirqs:
        softirqs.hold(starving.HOLD_S)


def verify(out: Path, *, softirqs_wait: bool) -> str:
    return starving.verify_resets(
        out, RUNS, "irq-core-collision" if softirqs_wait else "softirq-blackout"
    )


if __name__ == "__main__":
    inside(Path(sys.argv[1]))
