"""Which candidates to judge now: each once when it is over, earlier if it goes on, again if more
came. No I/O.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from necroscope.analysis.engine import IncidentCandidate
from necroscope.model.definitions import OVER_NS
from necroscope.model.units import NS_PER_S
from necroscope.verdicts.changes import TICK_NS, is_same
from necroscope.verdicts.entry import IncidentState, LedgerEntry

# What goes on this long is reported before it is over.
LONG_NS: Final = 12 * NS_PER_S
# What goes on and on is judged again when it is half as long again; at its end, if what was judged
# is not nearly all of it.
_LONGER: Final = 1.5
_NEARLY_ALL: Final = 1.15
_MOST_KNOWN: Final = 500


@dataclass(frozen=True, slots=True)
class _JudgedCandidate:
    """`candidate` reaches as far as it was seen, `length_ns` is how long it was when judged."""

    candidate: IncidentCandidate
    is_over: bool
    length_ns: int


class JudgingPlan:
    """Remembers what was judged, incident or not, so that it is not judged at every look."""

    def __init__(self, entries: Iterable[LedgerEntry] = ()) -> None:
        self._known = [
            _JudgedCandidate(
                IncidentCandidate(
                    one.from_ns, one.to_ns, one.core, len(one.events), True, one.subject
                ),
                entry.state is IncidentState.CLOSED,
                one.to_ns - one.from_ns,
            )
            for entry in entries
            for one in [entry.incident]
            if entry.state is not IncidentState.MERGED
        ]
        self.is_waiting = False

    def is_due(self, candidate: IncidentCandidate, end_ns: int, *, is_live: bool) -> bool:
        """`end_ns` is how far the recording reaches. A candidate that goes on may begin before the
        stretch that was looked at: it is as long as all looks saw it.
        """
        is_over = not is_live or candidate.to_ns < end_ns - OVER_NS
        self.is_waiting = self.is_waiting or not is_over
        known = self._find(candidate)
        if known is None:
            return is_over or candidate.to_ns - candidate.from_ns >= LONG_NS
        before = known.candidate
        if is_over:
            return self._is_more(candidate, known)
        seen = replace(
            before,
            from_ns=min(before.from_ns, candidate.from_ns),
            to_ns=max(before.to_ns, candidate.to_ns),
        )
        self._known[self._known.index(known)] = replace(known, candidate=seen, is_over=False)
        return seen.to_ns - seen.from_ns >= _LONGER * known.length_ns

    def _is_more(self, candidate: IncidentCandidate, known: _JudgedCandidate) -> bool:
        """Whether what is over now was judged without much of it."""
        before = known.candidate
        if candidate.events > before.events:
            return True
        if known.is_over:
            return candidate.to_ns > before.to_ns + TICK_NS
        from_ns = min(before.from_ns, candidate.from_ns)
        return candidate.to_ns - from_ns > _NEARLY_ALL * known.length_ns

    def note(self, candidate: IncidentCandidate, end_ns: int, *, is_live: bool) -> None:
        """It is judged now."""
        is_over = not is_live or candidate.to_ns < end_ns - OVER_NS
        same = [one for one in self._known if is_same(one.candidate, candidate)]
        from_ns = min([candidate.from_ns, *(one.candidate.from_ns for one in same)])
        events = max([candidate.events, *(one.candidate.events for one in same)])
        whole = replace(candidate, from_ns=from_ns, events=events)
        kept = [one for one in self._known if one not in same]
        known = _JudgedCandidate(whole, is_over, whole.to_ns - from_ns)
        self._known = [*kept, known][-_MOST_KNOWN:]

    def _find(self, candidate: IncidentCandidate) -> _JudgedCandidate | None:
        return next((one for one in self._known if is_same(one.candidate, candidate)), None)
