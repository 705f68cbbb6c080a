"""A debugger stops a daemon for seconds, and its heartbeat does not go out.

What it does: a daemon beats a few times per second, as raylet, etcd and corosync do. A tool
attaches to it by ptrace(2), as gcore, gdb and some profilers do to copy its memory, and keeps it
stopped for seconds. No core is busy, and no task waits for anything.

Seen in the wild: etcd (`leader failed to send out heartbeat on time`), Ray (raylet marked dead by
the health check), corosync (`Process pause detected`): nodes taken for dead although they work.

What must be seen: that the beat was missed, that the daemon was stopped, and by whom.
"""

import ctypes
import os
import time
from typing import ClassVar, Final

from necroscope.lab.noted_waits import NotedWaits, WaitScenario
from necroscope.lab.scenario import KnownCulprit
from necroscope.lab.stage import Stage

_ATTACH, _DETACH = 16, 17  # linux/ptrace.h
_LEARNT_S: Final = 4.0


def beat(period_s: float, log: str) -> None:
    """The log has the longest time by which a beat was late."""
    waits = NotedWaits(log)
    while True:
        due = time.monotonic() + period_s
        time.sleep(period_s)
        waits.note(time.monotonic() - due)


def stop_again(pid: int, held_s: float, pause_s: float) -> None:
    """Attach to a process, keep it stopped for this long, and let it go."""
    libc = ctypes.CDLL(None)
    libc.ptrace.argtypes = [ctypes.c_long] * 4
    while True:
        time.sleep(pause_s)
        libc.ptrace(_ATTACH, pid, 0, 0)
        os.waitpid(pid, 0x40000000)  # __WALL
        time.sleep(held_s)
        libc.ptrace(_DETACH, pid, 0, 0)


class TracedDaemon(WaitScenario):
    """A daemon that beats, and a tool that stops it now and then."""

    held_s: ClassVar[tuple[float, float]]
    pause_s: ClassVar[float]

    def prepare(self, stage: Stage) -> None:
        self.logs = [stage.watch(stage.scratch / "waits")]
        period_s = stage.random.uniform(0.1, 0.5)
        self.daemon = stage.start(beat, period_s, self.logs[0], comm=stage.invent("agent"))

    def provoke(self, stage: Stage) -> None:
        held_s = stage.random.uniform(*self.held_s)
        tool = stage.start(
            stop_again, self.daemon.pid, held_s, self.pause_s, comm=stage.invent("tool")
        )
        self.culprit = KnownCulprit(tool.comm, tool.pid)
        stage.hold(self.daemon, tool)


class LateHeartbeat(TracedDaemon):
    name = "late-heartbeat"
    cause = "late-heartbeat"
    twin = "heartbeat-on-time"
    held_s = (3.0, 4.5)
    pause_s = _LEARNT_S
    worst_ms = 2500
