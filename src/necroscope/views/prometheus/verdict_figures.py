"""Verdicts as metrics: incidents by cause, and when, how sure and on which core the last one of
each cause was.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from necroscope.model.units import NS_PER_S
from necroscope.views.prometheus.exposition import Counter, Gauge, Metric

UNKNOWN: Final = "unknown"


class VerdictFigures:
    """Fed with each incident once. The causes are a fixed set of words, so the series are
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

    def take(
        self, cause: str, confidence: float, from_ns: int, to_ns: int, core: int | None
    ) -> None:
        self._incidents.add(1, cause)
        self._last_time.set(from_ns / NS_PER_S, cause)
        self._last_length.set((to_ns - from_ns) / NS_PER_S, cause)
        self._last_confidence.set(confidence, cause)
        self._last_core.set(core, cause)
