"""Victims that measure their own waits, the longest of which is in a file that the meter reads, and
the scenarios that are judged by it.
"""

import os
from pathlib import Path
from typing import ClassVar

from necroscope.lab.measured import Measurements
from necroscope.lab.scenario import KnownCulprit, KnownOrigin, Scenario, Truth, reached
from necroscope.lab.stage import Stage


class NotedWaits:
    """Milliseconds, written when there is a longer one."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._worst_ms = 0
        self._write()

    def note(self, waited_s: float) -> None:
        if 1000 * waited_s > self._worst_ms:
            self._worst_ms = round(1000 * waited_s)
            self._write()

    def _write(self) -> None:
        new = self._path.with_suffix(f".{os.getpid()}")
        new.write_text(f"{self._worst_ms}\n")
        new.replace(self._path)


class WaitScenario(Scenario):
    """`logs` have the longest wait of each victim. The longest of all is at least `worst_ms` in an
    incident, which `culprit` makes, and at most that where nothing is wrong.
    """

    worst_ms: ClassVar[int]
    logs: list[str]
    culprit: KnownCulprit

    def verify(self, stage: Stage, measured: Measurements) -> Truth:  # noqa: ARG002
        worst_ms, what = max(map(measured.highest, self.logs)), "longest wait in ms"
        if self.cause is None:
            return Truth({"worst_wait_ms": reached(what, worst_ms, at_most=self.worst_ms)})
        return Truth(
            {"worst_wait_ms": reached(what, worst_ms, at_least=self.worst_ms)},
            culprit=self.culprit,
            origin=KnownOrigin("process", self.culprit.comm),
        )
