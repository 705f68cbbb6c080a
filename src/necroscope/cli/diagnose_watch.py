"""`diagnose --watch`: each incident of a live recording told when it is seen and once more when it
is over.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from necroscope.analysis.engine import diagnose
from necroscope.analysis.report import Incident, Report
from necroscope.model.definitions import LEFT_BEHIND_NS, OVER_NS
from necroscope.model.span import Span
from necroscope.model.units import NS_PER_S
from necroscope.store.query import Store
from necroscope.views.report_text import incident_to_text

_EVERY_S: Final = 5.0
_BACK_NS: Final = 600 * NS_PER_S
_LONGEST_BACK_NS: Final = 3600 * NS_PER_S
_MOST_KNOWN: Final = 100


def watch(store: Store, width: int, tell: Callable[[str], None]) -> None:
    """Until interrupted, or until nobody records any more."""
    told = Told(width)
    while True:
        first_ns, last_ns = store.span()
        is_ended = not is_recorded_now(store)
        from_ns = max(
            first_ns,
            last_ns - _LONGEST_BACK_NS,
            min(last_ns - _BACK_NS, told.since_ns(last_ns) - 60 * NS_PER_S),
        )
        for text in told.news(
            diagnose(store, span=Span(from_ns, last_ns + 1)), last_ns, is_ended=is_ended
        ):
            tell(text + "\n")
        if is_ended:
            return
        time.sleep(_EVERY_S)


def is_recorded_now(store: Store) -> bool:
    """Whether a segment is being written: a live one that still grows."""
    live = [segment.to_ns for segment in store.catalog.segments if segment.is_live]
    return bool(live) and time.time_ns() - max(live) < LEFT_BEHIND_NS


@dataclass(slots=True)
class Told:
    """What was told already, and which of it was not over."""

    width: int
    known: list[Incident] = field(default_factory=list)
    going_on: list[Incident] = field(default_factory=list)

    def since_ns(self, now_ns: int) -> int:
        """When the oldest incident began that still goes on."""
        return min((incident.from_ns for incident in self.going_on), default=now_ns)

    def news(self, report: Report, last_ns: int, *, is_ended: bool) -> list[str]:
        """What was not told yet, as text."""
        texts = []
        unseen = list(self.going_on)
        for incident in report.wrong:
            is_over = is_ended or incident.to_ns < last_ns - OVER_NS
            before = next((one for one in self.known if _is_same(one, incident)), None)
            if before is not None and before not in self.going_on:
                continue
            unseen = [one for one in unseen if one is not before]
            whole = (
                replace(incident, from_ns=min(incident.from_ns, before.from_ns))
                if before
                else incident
            )
            if before is None or is_over:
                texts.append(incident_to_text(whole, self.width, goes_on=not is_over))
            self._keep(before, whole, is_over=is_over)
        for incident in unseen:
            # With more to compare it may be part of another, or nothing: it was told, so its end
            # is.
            if is_ended or incident.to_ns < last_ns - OVER_NS:
                texts.append(incident_to_text(incident, self.width))
                self._keep(incident, incident, is_over=True)
        return texts

    def _keep(self, before: Incident | None, now: Incident, *, is_over: bool) -> None:
        self.known = [*(one for one in self.known if one is not before), now][-_MOST_KNOWN:]
        self.going_on = [one for one in self.going_on if one is not before] + (
            [] if is_over else [now]
        )


def _is_same(one: Incident, other: Incident) -> bool:
    return (
        one.core == other.core
        and one.from_ns <= other.to_ns + OVER_NS
        and other.from_ns <= one.to_ns + OVER_NS
    )
