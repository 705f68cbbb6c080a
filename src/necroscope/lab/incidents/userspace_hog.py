"""One thread that never yields, pinned to one core.

What it does: a service is pinned to a core, of which it needs a fourth. Then a single thread loops
in user space on the same core, ahead of it by its nice value, and is pinned there too. No system
call, no lock, no memory: the kernel is not involved at all, and the other cores are free. The
service waits behind it.

Seen in the wild: a runaway loop with an affinity mask of one CPU on a core that also serves a
network queue; Amazon's ENA best practices ask in their fourth step whether user processes share
cores with the queue's interrupts. Softirqs still run when an interrupt returns, so resets of the
device are rare: on a whole machine's average it is one core among 96.

What must be seen: that core at 100 % user in one process, the others free, its affinity mask of one
core, and tasks that wait. It is neither the kernel's fault nor a device's. Without the service it
would be `pinned-worker`.
"""

import time

from necroscope.lab.measured import Measurements
from necroscope.lab.scenario import KnownCulprit, KnownOrigin, Scenario, Truth, reached
from necroscope.lab.stage import Stage


def spin(step: int) -> None:
    """Arithmetic only, so that nearly all of it is user time."""
    value = 1
    while True:
        value = (value * 6364136223846793005 + step) & 0xFFFFFFFFFFFFFFFF


def serve(work_s: float, pause_s: float) -> None:
    """A request, then a pause, as long as it lives."""
    while True:
        until_s = time.thread_time() + work_s
        while time.thread_time() < until_s:
            pass
        time.sleep(pause_s)


class UserspaceHog(Scenario):
    name = "userspace-hog"
    cause = "userspace-hog"
    twin = "pinned-worker"

    def prepare(self, stage: Stage) -> None:
        work_s = stage.random.uniform(0.002, 0.004)
        self.victim = stage.start(
            serve, work_s, 3 * work_s, comm=stage.invent("app"), cpu=stage.core
        )
        stage.watch_task(self.victim.pid)

    def provoke(self, stage: Stage) -> None:
        # Ahead of what else this machine may have to do there.
        self.hog = stage.start(
            spin,
            stage.random.randrange(1, 1000, 2),
            comm=stage.invent("app"),
            cpu=stage.core,
            nice=-10,
        )
        stage.hold(self.hog, self.victim)

    def verify(self, stage: Stage, measured: Measurements) -> Truth:
        shares = measured.shares(stage.core)
        _, waited_s = measured.schedstat(self.victim.pid)
        impact = {
            "user_share": reached("user share of the core", shares["user"], at_least=0.8),
            "victim_wait_share": reached(
                "share of time the service waited", waited_s / stage.seconds, at_least=0.35
            ),
        }
        return Truth(
            impact,
            core=stage.core,
            mode="user",
            culprit=KnownCulprit(self.hog.comm, self.hog.pid),
            origin=KnownOrigin("process", self.hog.comm),
        )
