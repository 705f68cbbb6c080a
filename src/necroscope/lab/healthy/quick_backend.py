"""The holder of a lock waits for a backend that answers.

What it does: as `silent-backend`, but the backend is never stopped: every question is answered
after some ten milliseconds.

Seen in the wild: every job that asks a server inside a lock.

What must be seen: nothing wrong.
"""

from necroscope.lab.incidents.silent_backend import LockedQuestions
from necroscope.lab.measured import Measured
from necroscope.lab.scenario import Truth, reached
from necroscope.lab.stage import Stage


class QuickBackend(LockedQuestions):
    name = "quick-backend"
    twin = "silent-backend"
    stops_after_s = 0.0

    def verify(self, stage: Stage, measured: Measured) -> Truth:  # noqa: ARG002
        worst_ms = measured.highest(self.log)
        return Truth({"worst_wait_ms": reached("longest wait in ms", worst_ms, at_most=700)})
