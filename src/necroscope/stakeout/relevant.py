"""Of all incidents that were recorded those that met a run; first the ones of what was caught and
of runs that failed.
"""

from dataclasses import replace
from typing import Final

from necroscope.analysis.report import Incident, Report
from necroscope.model.units import NS_PER_S
from necroscope.stakeout.outcome import Outcome, Run

# A line of the log comes a moment after the trouble it reports.
_LATE_NS: Final = 2 * NS_PER_S


def relevant(report: Report, outcome: Outcome) -> Report:
    """The report without what happened before, between and after the runs: that did not harm the
    job.
    """
    met = [
        incident
        for incident in report.incidents
        if any(_meets(incident, run) for run in outcome.runs)
    ]
    return replace(
        report,
        incidents=tuple(
            sorted(met, key=lambda incident: (_rank(incident, outcome), incident.from_ns))
        ),
    )


def _rank(incident: Incident, outcome: Outcome) -> int:
    if any(_holds(incident, event.time_ns) for event in outcome.caught):
        return 0
    return 1 if any(run.is_failure and _meets(incident, run) for run in outcome.runs) else 2


def _holds(incident: Incident, time_ns: int) -> bool:
    is_among_its_own = any(event.time_ns == time_ns for event in incident.events)
    return is_among_its_own or incident.from_ns <= time_ns <= incident.to_ns + _LATE_NS


def _meets(incident: Incident, run: Run) -> bool:
    return incident.from_ns <= run.ended_ns and incident.to_ns >= run.started_ns
