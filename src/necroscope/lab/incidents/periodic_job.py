"""The same burst at the same second, again and again.

What it does: a scheduler starts a job at each turn of its period, on the second. The job works for
about a second on one core, compressing and counting what it finds, and is gone. Between two turns
there is nothing to see.

Seen in the wild: cron jobs and timers that fire at the same second on every node of a fleet; the
EKS node monitoring agent reads the cron log for the same reason. A dashboard that averages over a
minute shows a flat line.

What must be seen: bursts of one short-lived process at equal distances, always another pid of the
same name, and the period itself, which tells whose timer it is. What runs in the burst is ordinary
work.
"""

import ctypes
import os
import time
import zlib
from itertools import pairwise

from necroscope.lab.measured import Measurements
from necroscope.lab.scenario import KnownCulprit, KnownOrigin, Scenario, Truth, reached
from necroscope.lab.stage import Stage
from necroscope.model.units import NS_PER_S

_PR_SET_NAME = 15


def start_jobs(period_s: int, work_s: float, job: str) -> None:
    """At each full period of the clock a process of that name, which works that long."""
    while True:
        time.sleep(period_s - time.time() % period_s)
        child = os.fork()
        if not child:
            ctypes.CDLL(None).prctl(_PR_SET_NAME, ctypes.c_char_p(job.encode()), 0, 0, 0)
            _compress(work_s)
            os._exit(0)
        os.waitpid(child, 0)


def _compress(work_s: float) -> None:
    text = bytes(range(256)) * 2048
    until_s = time.thread_time() + work_s
    while time.thread_time() < until_s:
        zlib.compress(text, 6)


def serve(work_s: float, pause_s: float) -> None:
    """A service on the same core, which has something to do all the time but never much: whom the
    job keeps waiting.
    """
    while True:
        _compress(work_s)
        time.sleep(pause_s)


class PeriodicJob(Scenario):
    name = "periodic-job"
    cause = "periodic-job"
    # One burst of it is a thread that fills its core.
    twin = "userspace-hog"
    seconds = 30

    def prepare(self, stage: Stage) -> None:
        self.service = stage.start(serve, 0.02, 0.03, comm=stage.invent("app"), cpu=stage.core)
        stage.watch_task(self.service.pid)

    def provoke(self, stage: Stage) -> None:
        self.period_s = stage.random.choice((4, 5, 6))
        work_s = stage.random.uniform(1.2, 1.8)
        self.job = stage.invent("tool")
        arguments = (self.period_s, work_s, self.job)
        # Its turn is at the second, even if other tasks want the core.
        self.scheduler = stage.start(
            start_jobs, *arguments, comm=stage.invent("agent"), cpu=stage.core, nice=-10
        )
        self.stat = stage.watch(f"/proc/{self.scheduler.pid}/stat")
        stage.hold(self.scheduler, self.service)

    def verify(self, stage: Stage, measured: Measurements) -> Truth:
        ends_ns = _ends_of_jobs(measured, self.stat)
        gaps_s = [(after - before) / NS_PER_S for before, after in pairwise(ends_ns)]
        regular = [gap_s for gap_s in gaps_s if abs(gap_s - self.period_s) < 0.2 * self.period_s]
        peak = measured.peak_share(stage.core, ("user", "nice", "system"), 1.0)
        impact = {
            "period_s": self.period_s,
            "peak_share": reached("highest share over 1 s", peak, at_least=0.9),
            "service_waits_s": reached(
                "seconds that the service waited",
                measured.schedstat(self.service.pid)[1],
                at_least=2,
            ),
            "turns": reached(
                "turns of the job at its period",
                len(regular),
                at_least=0.5 * stage.seconds / self.period_s,
            ),
        }
        return Truth(
            impact,
            core=stage.core,
            mode="user",
            culprit=KnownCulprit(self.job, also=(self.scheduler.comm,)),
            origin=KnownOrigin("process", self.scheduler.comm, also=(self.job,)),
        )


def _ends_of_jobs(measured: Measurements, stat: str) -> list[int]:
    """When the scheduler reaped a child that had worked for half a second at least (cutime of
    /proc/PID/stat).
    """
    times = [
        (time_ns, int(text.rpartition(")")[2].split()[13]))
        for time_ns, text in measured.texts(stat)
    ]
    least = os.sysconf("SC_CLK_TCK") // 2
    return [time_ns for (_, before), (time_ns, after) in pairwise(times) if after - before >= least]
