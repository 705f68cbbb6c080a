"""Entries of a ledger as the analysis would make them, without a recording."""

from tests.drawn_node import at

from necroscope.analysis.report import Incident, Verdict
from necroscope.verdicts.entry import IncidentState, LedgerEntry


def ledger_entry(
    cause: str,
    from_s: float,
    to_s: float,
    core: int | None = 1,
    confidence: float = 0.9,
    state: str = "closed",
) -> LedgerEntry:
    verdict = Verdict(cause, "title", confidence, "summary")
    place = at(from_s), at(to_s), core
    incident = Incident(f"{from_s}-core{core}", *place, "system", (), (), verdict)
    return LedgerEntry(IncidentState(state), at(to_s), incident)
