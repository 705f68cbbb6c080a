"""Verdicts as metrics: incidents by cause, and when, how sure and on which core the last one of
each cause was.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from necroscope.model.units import NS_PER_S
from necroscope.verdicts.entry import IncidentState, LedgerEntry
from necroscope.views.prometheus.exposition import Counter, Gauge, Metric

UNKNOWN: Final = "unknown"


class VerdictFigures:
    """Fed with the ledger's changes. The causes are a fixed set of words, so the series are
    bounded.
    """

    def __init__(self, causes: Iterable[str]) -> None:
        self._incidents = Counter(
            "necroscope_incidents_total",
            "Incidents by the cause that the verdict names.",
            ("cause",),
        )
        self._last_time = Gauge(
            "necroscope_last_incident_timestamp_seconds",
            "When the last incident of a cause began.",
            ("cause",),
        )
        self._last_length = Gauge(
            "necroscope_last_incident_duration_seconds",
            "How long it lasted when it was judged.",
            ("cause",),
        )
        self._last_confidence = Gauge(
            "necroscope_last_incident_confidence_ratio",
            "How sure its verdict is; from 0.5 on the cause is named.",
            ("cause",),
        )
        self._last_core = Gauge(
            "necroscope_last_incident_core_number",
            "Its core; none if it was the whole node.",
            ("cause",),
        )
        self._counted: set[str] = set()
        for cause in (*causes, UNKNOWN):
            self._incidents.add(0, cause)

    def metrics(self) -> Iterator[Metric]:
        yield from (
            self._incidents,
            self._last_time,
            self._last_length,
            self._last_confidence,
            self._last_core,
        )

    def leave_out(self, entries: Iterable[LedgerEntry]) -> None:
        """Those from before counting began."""
        self._counted |= {entry.id for entry in entries}

    def take(self, entry: LedgerEntry) -> None:
        """It is counted once; what is known of the last one of its cause follows it."""
        incident, verdict = entry.incident, entry.incident.verdict
        if entry.state is IncidentState.MERGED:
            return
        if entry.id not in self._counted:
            self._counted.add(entry.id)
            self._incidents.add(1, verdict.cause)
        self._last_time.set(incident.from_ns / NS_PER_S, verdict.cause)
        self._last_length.set((incident.to_ns - incident.from_ns) / NS_PER_S, verdict.cause)
        self._last_confidence.set(verdict.confidence, verdict.cause)
        self._last_core.set(incident.core, verdict.cause)
