"""One thread that never yields, nailed to one core.

What it does: a single thread loops in user space on one core it is pinned to. No system call, no lock, no memory: the kernel
is not involved at all, and the other cores are free. Work that is pinned to the same core, or wakes up there, waits behind
it.

Seen in the wild: a runaway loop with an affinity mask of one CPU on a core that also serves a network queue; Amazon's ENA
best practices ask in their fourth step whether user processes share cores with the queue's interrupts. Softirqs still run
when an interrupt returns, so resets of the device are rare: on a whole machine's average it is one core among 96.

What must be seen: that core at 100 % user in one process, the others free, its affinity mask of one core. It is neither the
kernel's fault nor a device's.
"""

from necroscope.lab.measured import Measured
from necroscope.lab.scenario import Culprit, Origin, Scenario, Truth, reached
from necroscope.lab.stage import Stage


def spin(step: int) -> None:
    """Arithmetic only, so that nearly all of it is user time."""
    value = 1
    while True:
        value = (value * 6364136223846793005 + step) & 0xFFFFFFFFFFFFFFFF


class UserspaceHog(Scenario):
    name = "userspace-hog"
    cause = "userspace-hog"
    twin = "fifo-spinner-harmless"

    def provoke(self, stage: Stage) -> None:
        # Ahead of what else this machine may have to do there.
        self.hog = stage.start(spin, stage.random.randrange(1, 1000, 2), comm=stage.invent("app"), cpu=stage.core, nice=-10)
        stage.hold(self.hog)

    def verify(self, stage: Stage, measured: Measured) -> Truth:
        shares = measured.shares(stage.core)
        impact = {"user_share": reached("user share of the core", shares["user"], at_least=0.8)}
        return Truth(
            impact,
            core=stage.core,
            mode="user",
            culprit=Culprit(self.hog.comm, self.hog.pid),
            origin=Origin("process", self.hog.comm),
        )
