"""All questions of the check-up, and what their answers amount to."""

from dataclasses import dataclass
from typing import Any, Final

from necroscope.analysis.checkup import (
    crash_loops,
    irq_collisions,
    log_alarms,
    missing_sources,
    network_losses,
    saturated_cores,
    softirq_stalls,
    task_waits,
    vendor_units,
    zombie_cgroups,
)
from necroscope.analysis.checkup.finding import Finding, Level, NodeSnapshot

_QUESTIONS: Final = (
    saturated_cores,
    softirq_stalls,
    task_waits,
    log_alarms,
    zombie_cgroups,
    crash_loops,
    vendor_units,
    irq_collisions,
    network_losses,
    missing_sources,
)
_ORDER: Final = list(Level)

WELL: Final = 0
PROBLEM: Final = 1
COULD_NOT_TELL: Final = 2


@dataclass(frozen=True, slots=True)
class Checkup:
    """Worst first; `notices` are what the sources could not do. `exit_code` is the one a
    node-problem-detector plugin needs.
    """

    findings: tuple[Finding, ...]
    notices: tuple[str, ...]

    @property
    def exit_code(self) -> int:
        levels = {finding.level for finding in self.findings}
        return (
            PROBLEM
            if Level.PROBLEM in levels
            else COULD_NOT_TELL
            if Level.UNKNOWN in levels
            else WELL
        )

    def as_json(self) -> dict[str, Any]:
        status = {WELL: "well", PROBLEM: "problem", COULD_NOT_TELL: "unknown"}[self.exit_code]
        return {
            "status": status,
            "findings": [finding.as_json() for finding in self.findings],
            "notices": list(self.notices),
        }


def check_up(node: NodeSnapshot, more: tuple[Finding, ...] = ()) -> Checkup:
    """`more` are findings from elsewhere, such as the timed read that has to be asked for."""
    found = [finding for question in _QUESTIONS for finding in question.examine(node)]
    ordered = sorted([*found, *more], key=lambda finding: _ORDER.index(finding.level))
    return Checkup(tuple(ordered), tuple(node.source.notices()))
