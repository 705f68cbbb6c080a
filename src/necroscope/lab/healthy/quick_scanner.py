"""A scanner must permit each open, and does so at once.

What it does: as `slow-scanner`, but each answer takes some milliseconds.

Seen in the wild: every machine with a virus scanner that works.

What must be seen: nothing wrong.
"""

from necroscope.lab.incidents.slow_scanner import ScannedDirectory
from necroscope.lab.measured import Measured
from necroscope.lab.scenario import Truth, reached
from necroscope.lab.stage import Stage


class QuickScanner(ScannedDirectory):
    name = "quick-scanner"
    twin = "slow-scanner"
    takes_s = 0.005

    def verify(self, stage: Stage, measured: Measured) -> Truth:  # noqa: ARG002
        worst_ms = max(map(measured.highest, self.logs))
        return Truth({"worst_open_ms": reached("longest open in ms", worst_ms, at_most=800)})
