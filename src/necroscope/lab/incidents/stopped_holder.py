"""The holder of a lock is stopped, and every task that wants the lock waits until it continues.

What it does: jobs share a lock on a file and take it in turn. One of them gets SIGSTOP, as by a
debugger, a `kill -STOP` or a shell's Ctrl-Z, while it has the lock. It is not given back, so no
wait ends, and nothing in the log says so.

Seen in the wild: a job that was put into the background by hand and forgotten; a core dump or a
debugger that stops a process inside its section.

What must be seen: waits that go on, who has the lock, and that it is stopped.
"""

import os
import signal
import time

from necroscope.lab.actor import Actor
from necroscope.lab.incidents.file_lock_convoy import LockedFile, locked, measure_queue_s
from necroscope.lab.measured import Measurements
from necroscope.lab.scenario import KnownOrigin, Truth, reached
from necroscope.lab.stage import Stage


def stop_inside(path: str, after_s: float) -> None:
    """Takes turns for this long, and is stopped while it has the lock."""
    until = time.monotonic() + after_s
    while True:
        with locked(path):
            time.sleep(0.02)
            if time.monotonic() > until:
                os.kill(os.getpid(), signal.SIGSTOP)
        time.sleep(0.02)


class StoppedHolder(LockedFile):
    name = "stopped-holder"
    cause = "file-lock-convoy"
    twin = "file-lock-turns"
    seconds = 15

    def prepare(self, stage: Stage) -> None:
        super().prepare(stage)
        stage.watch("/proc/locks")

    def start_holder(self, stage: Stage) -> Actor:
        return stage.start(stop_inside, self.file, 2.0, comm=stage.invent("agent"))

    def verify(self, stage: Stage, measured: Measurements) -> Truth:
        stood_s = measure_queue_s(stage, measured, self.holder)
        return Truth(
            {"stood_s": reached("seconds in which jobs stood", stood_s, at_least=5)},
            culprit=self.culprit,
            origin=KnownOrigin("process", self.holder.comm),
        )
