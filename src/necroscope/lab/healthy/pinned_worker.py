"""A worker on a core of its own, and no task waits behind it.

What it does: an ordinary thread that never waits is pinned to one core. Nothing else is pinned
there, and who wakes up there finds room on another core.

Seen in the wild: ranks of MPI and data loaders that are bound to cores, pods with the static CPU
policy of the kubelet, databases with one thread a core. They run so by design.

What must be seen: nothing wrong. That a core is full of one thread which may run nowhere else is
not harm; somebody must wait.
"""

import re
from typing import Final

from necroscope.lab.busy import busy_and_well
from necroscope.lab.incidents.userspace_hog import spin
from necroscope.lab.measured import Measurements
from necroscope.lab.scenario import Scenario, Truth, reached
from necroscope.lab.stage import Stage
from necroscope.model.units import NS_PER_US

_PRESSURE: Final = "/proc/pressure/cpu"
_STALLED_US: Final = re.compile(r"some .*total=(\d+)")


class PinnedWorker(Scenario):
    name = "pinned-worker"
    twin = "userspace-hog"
    seconds = 15
    needs = ("ip", _PRESSURE)

    def prepare(self, stage: Stage) -> None:
        stage.make_network(gap_s=0.02)
        stage.watch(_PRESSURE)

    def provoke(self, stage: Stage) -> None:
        stage.hold(
            stage.start(
                spin, stage.random.randrange(1, 1000, 2), comm=stage.invent("app"), cpu=stage.core
            )
        )

    def verify(self, stage: Stage, measured: Measurements) -> Truth:
        truth = busy_and_well(stage, measured, least_busy=0.9)
        waited = waited_share(measured)
        truth.impact["waited_share"] = reached(
            "share of time in which a task waited for a core", waited, at_most=0.2
        )
        return truth


def waited_share(measured: Measurements) -> float:
    """By the kernel's own count."""
    stalled_us = [
        (time_ns, int(some[1]))
        for time_ns, text in measured.texts(_PRESSURE)
        if (some := _STALLED_US.match(text))
    ]
    if len(stalled_us) < 2:
        return 0.0
    (first_ns, first_us), (last_ns, last_us) = stalled_us[0], stalled_us[-1]
    return (last_us - first_us) * NS_PER_US / (last_ns - first_ns)
