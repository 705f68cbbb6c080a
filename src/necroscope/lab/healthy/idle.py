"""A machine that does nothing.

What it does: nothing at all, for as long as the others provoke. What runs is what ran before:
timers, kernel threads, the recorder.

Seen in the wild: most nodes, most of the time. A diagnosis that finds something here will cry wolf
on every node of a fleet.

What must be seen: no incident.
"""

from necroscope.lab.measured import Measurements
from necroscope.lab.scenario import Scenario, Truth, reached
from necroscope.lab.stage import Stage


class Idle(Scenario):
    name = "idle"

    def provoke(self, stage: Stage) -> None:
        stage.hold()

    def verify(self, stage: Stage, measured: Measurements) -> Truth:
        busy = 1 - measured.shares(stage.core)["idle"]
        return Truth({"busy_share": reached("busy share of the core", busy, at_most=0.5)})
