"""Which candidates to judge now: each once when it is over, earlier if it goes on, again if more
came. No I/O.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from necroscope.analysis.engine import IncidentCandidate
from necroscope.analysis.report import Incident
from necroscope.model.definitions import OVER_NS
from necroscope.model.units import NS_PER_S
from necroscope.verdicts.changes import TICK_NS, is_same

# What goes on this long is reported before it is over.
LONG_NS: Final = 12 * NS_PER_S
# What goes on and on is judged again when it is half as long again.
_LONGER: Final = 1.5
_MOST_KNOWN: Final = 500


@dataclass(frozen=True, slots=True)
class _Known:
    candidate: IncidentCandidate
    is_over: bool


class JudgingPlan:
    """Remembers what was judged, incident or not, so that it is not judged at every look."""

    def __init__(self, settled: Iterable[Incident] = ()) -> None:
        self._known = [
            _Known(IncidentCandidate(one.from_ns, one.to_ns, one.core, len(one.events), True), True)
            for one in settled
        ]
        self.is_waiting = False

    def is_due(self, candidate: IncidentCandidate, end_ns: int, *, is_live: bool) -> bool:
        """`end_ns` is how far the recording reaches."""
        is_over = not is_live or candidate.to_ns < end_ns - OVER_NS
        length_ns = candidate.to_ns - candidate.from_ns
        known = self._find(candidate)
        self.is_waiting = self.is_waiting or not is_over
        if known is None:
            return is_over or length_ns >= LONG_NS
        before = known.candidate
        if is_over:
            is_longer = candidate.to_ns > before.to_ns + TICK_NS
            return not known.is_over or is_longer or candidate.events > before.events
        return length_ns >= _LONGER * (before.to_ns - before.from_ns)

    def note(self, candidate: IncidentCandidate, end_ns: int, *, is_live: bool) -> None:
        """It is judged now."""
        is_over = not is_live or candidate.to_ns < end_ns - OVER_NS
        kept = [one for one in self._known if not is_same(one.candidate, candidate)]
        self._known = [*kept, _Known(candidate, is_over)][-_MOST_KNOWN:]

    def _find(self, candidate: IncidentCandidate) -> _Known | None:
        return next((one for one in self._known if is_same(one.candidate, candidate)), None)
