"""Incidents of a ledger in one line each, for a screen and for a check-up of the node."""

from collections.abc import Sequence
from typing import Final

from necroscope.analysis.checkup.finding import Finding, Level
from necroscope.model.names import clean
from necroscope.model.units import NS_PER_S, format_duration, format_moment
from necroscope.verdicts.entry import IncidentState, LedgerEntry
from necroscope.verdicts.ledger import Ledger

# What was over longer ago is for `diagnose`.
_RECENT_NS: Final = 600 * NS_PER_S


def recent(ledger: Ledger) -> list[LedgerEntry]:
    """What goes on, and what ended in the last ten minutes of the recording; the newest first."""
    reached_ns = ledger.judged[1] if ledger.judged else 0
    entries = [
        entry
        for entry in ledger.incidents()
        if entry.state is IncidentState.OPEN or entry.incident.to_ns > reached_ns - _RECENT_NS
    ]
    return sorted(entries, key=lambda entry: -entry.incident.from_ns)


def incident_line(entry: LedgerEntry) -> str:
    incident = entry.incident
    place = "the node" if incident.core is None else f"core {incident.core}"
    since = format_moment(incident.from_ns)
    is_open = entry.state is IncidentState.OPEN
    length = format_duration(incident.to_ns - incident.from_ns)
    when = f"since {since}" if is_open else f"from {since} for {length}"
    return clean(f"incident on {place}, {when}: {incident.verdict.title}", 500)


def incident_findings(entries: Sequence[LedgerEntry], directory: str) -> tuple[Finding, ...]:
    """One that goes on is a problem of now, one that is over is worth a look."""
    return tuple(
        Finding(
            "incident",
            Level.PROBLEM if entry.state is IncidentState.OPEN else Level.NOTICE,
            incident_line(entry),
            (clean(entry.incident.verdict.summary, 500),),
            f"what to do: necroscope diagnose {directory}",
        )
        for entry in entries
    )
