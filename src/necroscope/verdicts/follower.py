"""Follows a recording and judges each stretch of it once: a cheap look at its end whenever it grew,
the analysis where the look found something and for every finished stretch.

Times are the recording's own: how far it reaches, never what a clock says.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from necroscope.analysis.engine import IncidentCandidate, Wanted, diagnose
from necroscope.analysis.report import Report
from necroscope.errors import NecroscopeError
from necroscope.model.span import Span
from necroscope.model.units import NS_PER_S, format_moment
from necroscope.segment.recording import segment_paths, segment_start_ns
from necroscope.store.catalog import Catalog
from necroscope.store.query import Store
from necroscope.verdicts.changes import Judgement, changes
from necroscope.verdicts.entry import IncidentState, LedgerEntry
from necroscope.verdicts.ledger import Ledger
from necroscope.verdicts.plan import LONG_NS, JudgingPlan

# Enough to see that something began, and to see it end.
_LOOK_BACK_NS: Final = 75 * NS_PER_S
# An incident is judged with the minutes before it; one that goes on all day with the last hour.
BEFORE_NS: Final = 600 * NS_PER_S
_HOUR_NS: Final = 3600 * NS_PER_S
# While nothing happens a look at every second flush is enough.
_QUIET_NS: Final = 6 * NS_PER_S
# What only shows over minutes (a beat, a slow leak) is looked for by the stretch.
_STRETCH_NS: Final = 300 * NS_PER_S
# What began since may not be in the ledger yet.
_UNSETTLED_NS: Final = 2 * LONG_NS


@dataclass(frozen=True, slots=True)
class Round:
    """What a round found: entries to write, the stretch that is judged, and what was missing.

    `is_judged`: the analysis ran, and not only the look.
    """

    entries: Sequence[LedgerEntry]
    judged: Span
    notes: Sequence[str] = ()
    is_judged: bool = False


class RecentCatalog(Catalog):
    """The last segments only: what a week holds besides would be listed at every look."""

    def refresh(self) -> None:
        super().refresh()
        from_ns = _end_ns(self) - 2 * _HOUR_NS
        self.segments = [one for one in self.segments if one.to_ns >= from_ns]


class Follower:
    """The caller writes what a round returns, and `ledger` says so before the next."""

    def __init__(self, directory: Path, ledger: Ledger) -> None:
        self._directory = directory
        self._ledger = ledger
        self._store = Store(RecentCatalog(directory))
        self._plan = JudgingPlan(ledger.entries.values() if ledger.judged else ())
        self._judged = ledger.judged
        self._stretch_ns = ledger.judged[1] if ledger.judged else 0
        self._looked_ns = 0
        self._is_past_left = True
        self._left_out: tuple[str, ...] = ()

    def look(self, *, is_live: bool, is_alarm: bool = False) -> Round | None:
        """A round if one is due; `is_alarm` makes it due as soon as the recording has grown."""
        self._store.catalog.refresh()
        if not self._store.catalog.segments:
            return None
        end_ns = _end_ns(self._store.catalog)
        judged = self._begun(end_ns)
        is_hasty = is_alarm or self._plan.is_waiting
        if is_live and end_ns < self._looked_ns + (1 if is_hasty else _QUIET_NS):
            return None
        self._looked_ns, self._plan.is_waiting = end_ns, False
        due = self._due(end_ns, is_live=is_live)
        if due or not is_live or end_ns - self._stretch_ns >= _STRETCH_NS:
            found = self._judge(end_ns, is_live=is_live)
            for candidate in due:
                # The longer stretch may have cut it otherwise: it is judged all the same.
                self._plan.note(candidate, end_ns, is_live=is_live)
        else:
            found = Round((), judged)
        settled_ns = end_ns - _UNSETTLED_NS if is_live else end_ns
        self._judged = Span(judged[0], max(judged[1], settled_ns))
        notes = (*self._left_out, *found.notes)
        return Round(found.entries, self._judged, notes, found.is_judged)

    @property
    def first_ns(self) -> int:
        """Where the recording begins now."""
        paths = segment_paths(self._directory)
        return segment_start_ns(paths[0].name) if paths else 0

    def leave_out(self) -> None:
        """Those who began to judge from here died: what is recorded until now goes unjudged."""
        end_ns = _end_ns(self._store.catalog)
        from_ns = self._judged[1] if self._judged else end_ns
        self._left_out = (f"{_between(from_ns, end_ns)} was left out: it ended who judged it",)
        self._looked_ns = self._stretch_ns = end_ns
        self._judged = Span(self._judged[0] if self._judged else end_ns, end_ns)

    def judge_past(self) -> Round | None:
        """The hour before what is judged; None if the recording does not reach back that far."""
        if not self._is_past_left:
            return None
        store = Store.open(self._directory)
        begun_ns = self._judged[0] if self._judged is not None else 0
        before = {
            start_ns: one.to_ns
            for one in store.catalog.segments
            if (start_ns := segment_start_ns(one.name)) < begun_ns - NS_PER_S
        }
        if not before:
            self._is_past_left = False
            return None
        to_ns = min(begun_ns, max(before.values()) + 1)
        from_ns = max(min(before), to_ns - _HOUR_NS)
        report = _diagnose(store, Span(from_ns - BEFORE_NS, to_ns + BEFORE_NS), None)
        own = [one for one in report.wrong if from_ns <= one.from_ns < to_ns]
        assert self._judged is not None
        self._judged = Span(from_ns, self._judged[1])
        known = self._ledger.entries.values()
        closed = [one for one in known if one.state is not IncidentState.OPEN]
        judgement = Judgement(from_ns, self._looked_ns, is_live=False, incidents=own)
        return Round(changes(closed, judgement), self._judged, report.notes, is_judged=True)

    def _begun(self, end_ns: int) -> Span:
        """Where judging began, and how far it came. It starts over with the last hour of an old
        recording, of one that was not judged for longer, and of one whose clock was set back.
        """
        judged = self._judged
        if judged is None or not end_ns - _HOUR_NS <= judged[1] <= end_ns + BEFORE_NS:
            starts_ns = [segment_start_ns(one.name) for one in self._store.catalog.segments]
            self._stretch_ns = max(min(starts_ns), end_ns - _HOUR_NS)
            self._judged = Span(self._stretch_ns, self._stretch_ns)
            self._looked_ns, self._is_past_left = 0, True
        assert self._judged is not None
        return self._judged

    def _due(self, end_ns: int, *, is_live: bool) -> list[IncidentCandidate]:
        due: list[IncidentCandidate] = []

        def note(candidate: IncidentCandidate) -> bool:
            if self._plan.is_due(candidate, end_ns, is_live=is_live):
                due.append(candidate)
            return False

        _diagnose(self._store, Span(end_ns - _LOOK_BACK_NS, end_ns + 1), note)
        return due

    def _judge(self, end_ns: int, *, is_live: bool) -> Round:
        seen: list[IncidentCandidate] = []

        def wanted(candidate: IncidentCandidate) -> bool:
            seen.append(candidate)
            is_due = self._plan.is_due(candidate, end_ns, is_live=is_live)
            if is_due:
                self._plan.note(candidate, end_ns, is_live=is_live)
            return is_due

        known = self._ledger.entries.values()
        open_ns = [one.incident.from_ns for one in known if one.state is IncidentState.OPEN]
        from_ns = min([self._stretch_ns, *open_ns]) - BEFORE_NS
        from_ns = max(from_ns, end_ns - _HOUR_NS)
        report = _diagnose(self._store, Span(from_ns, end_ns + 1), wanted)
        if end_ns - self._stretch_ns >= _STRETCH_NS:
            self._stretch_ns = end_ns
        judgement = Judgement(from_ns, end_ns, is_live, report.wrong, seen)
        return Round(changes(known, judgement), Span(from_ns, end_ns), report.notes, is_judged=True)


def _end_ns(catalog: Catalog) -> int:
    """How far the recording reaches: by what is being recorded, else by all of it."""
    live = [one for one in catalog.segments if one.is_live] or catalog.segments
    return max((catalog.reader(one).span[1] for one in live), default=0)


def _diagnose(store: Store, span: Span, wanted: Wanted | None) -> Report:
    """A stretch that nothing tells about, or that a cause stumbles over, has no incidents, and says
    why.
    """
    try:
        return diagnose(store, span=span, wanted=wanted)
    except NecroscopeError as error:
        cause = error.facts
    except Exception as error:  # noqa: BLE001 - the next stretch is judged all the same
        cause = f"{type(error).__name__}: {error}"
    return Report(0, "", *span, (), (), (f"{_between(*span)} was not judged: {cause}",))


def _between(from_ns: int, to_ns: int) -> str:
    return f"{format_moment(from_ns)} to {format_moment(to_ns)}"
