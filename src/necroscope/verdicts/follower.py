"""Follows a recording and judges each stretch of it once: a cheap look at its end whenever it grew,
the analysis where the look found something and for every finished stretch.

Times are the recording's own: how far it reaches, never what a clock says.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from necroscope.analysis.engine import IncidentCandidate, Wanted, diagnose
from necroscope.analysis.report import Report
from necroscope.errors import NecroscopeError
from necroscope.model.span import Span
from necroscope.model.units import NS_PER_S
from necroscope.segment.kept_rows import KeptRows
from necroscope.segment.recording import segment_paths, segment_start_ns
from necroscope.segment.sealed_reader import SegmentGoneError
from necroscope.store.catalog import Catalog
from necroscope.store.query import Store
from necroscope.verdicts.changes import Judgement, changes, is_same
from necroscope.verdicts.entry import IncidentState, LedgerEntry
from necroscope.verdicts.ledger import Ledger, UnjudgedStretch, includes
from necroscope.verdicts.plan import LONG_NS, JudgingPlan
from necroscope.verdicts.provisional import ProvisionalVerdicts

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
# What a look reads again is the last minutes, what a judgement does the last quarter of an hour.
_KEPT_BYTES: Final = 16 << 20
# So often the process may die on a stretch; then the stretch is left out.
_MOST_DEATHS: Final = 2
_FATAL: Final = "the process that judges died on it"


@dataclass(frozen=True, slots=True)
class Round:
    """What a round found: entries to write, the stretch that is judged, and what was missing.

    `is_judged`: the analysis ran, and not only the look.
    """

    entries: Sequence[LedgerEntry]
    judged: Span
    notes: Sequence[str] = ()
    is_judged: bool = False
    unjudged: Sequence[UnjudgedStretch] = ()


class RecentCatalog(Catalog):
    """The last segments only: everything else a week holds would be listed at every look."""

    def refresh(self) -> None:
        super().refresh()
        from_ns = _end_ns(self) - 2 * _HOUR_NS
        self.segments = [one for one in self.segments if one.to_ns >= from_ns]


class Follower:
    """The caller writes what a round returns, and `ledger` says so before the next."""

    def __init__(
        self, directory: Path, ledger: Ledger, attempt: Callable[[Span], None] = lambda _: None
    ) -> None:
        """`attempt` is called with each stretch before it is judged."""
        self._attempt = attempt
        self._directory = directory
        self._ledger = ledger
        self._catalog = RecentCatalog(directory, KeptRows(_KEPT_BYTES))
        self._store = Store(self._catalog)
        self._provisional = ProvisionalVerdicts(self._store)
        self._plan = JudgingPlan(ledger.entries.values() if ledger.judged else ())
        self._judged = ledger.judged
        self._stretch_ns = ledger.judged[1] if ledger.judged else 0
        self._looked_ns = 0
        self._is_past_left = True

    def look(self, *, is_live: bool, is_alarm: bool = False) -> Round | None:
        """A round if one is due; `is_alarm` makes it due as soon as the recording has grown."""
        self._catalog.refresh()
        if not self._catalog.segments:
            return None
        end_ns = _end_ns(self._catalog)
        judged = self._begun(end_ns)
        is_hasty = is_alarm or self._plan.is_waiting
        if is_live and end_ns < self._looked_ns + (1 if is_hasty else _QUIET_NS):
            return None
        is_first, self._looked_ns = self._looked_ns == 0, end_ns
        fresh = Span(min(judged[1], self._stretch_ns), end_ns)
        if self._is_fatal(fresh):
            self._stretch_ns, self._judged = end_ns, Span(judged[0], end_ns)
            left_out = UnjudgedStretch(fresh, _FATAL)
            return Round((), self._judged, is_judged=True, unjudged=[left_out])
        if is_first:
            self._attempt(fresh)
        self._plan.is_waiting = False
        due, candidates = self._due(end_ns, is_live=is_live)
        again = self._provisional.due(self._recent(end_ns), end_ns)
        if due or again or not is_live or end_ns - self._stretch_ns >= _STRETCH_NS:
            self._attempt(fresh)
            found = self._judge(fresh, due, again, is_live=is_live)
        else:
            found = Round(self._end_incidents(candidates, end_ns), judged)
        settled_ns = end_ns - _UNSETTLED_NS if is_live else end_ns
        self._judged = Span(judged[0], max(judged[1], settled_ns))
        return replace(found, judged=self._judged)

    @property
    def first_ns(self) -> int:
        """Where the recording begins now."""
        paths = segment_paths(self._directory)
        return segment_start_ns(paths[0].name) if paths else 0

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
        assert self._judged is not None
        self._judged = Span(from_ns, self._judged[1])
        past = Span(from_ns, to_ns)
        if self._is_fatal(past):
            left_out = UnjudgedStretch(past, _FATAL)
            return Round((), self._judged, is_judged=True, unjudged=[left_out])
        self._attempt(past)
        around = self._without_fatal(Span(from_ns - BEFORE_NS, to_ns + BEFORE_NS), past)
        report = _diagnose(store, around, None)
        if isinstance(report, str):
            unjudged = [UnjudgedStretch(past, report)]
            return Round((), self._judged, is_judged=True, unjudged=unjudged)
        own = [one for one in report.wrong if from_ns <= one.from_ns < to_ns]
        known = self._ledger.entries.values()
        closed = [one for one in known if one.state is not IncidentState.OPEN]
        judgement = Judgement(from_ns, self._looked_ns, is_live=False, incidents=own)
        entries = changes(closed, judgement, self._ledger.revision)
        return Round(entries, self._judged, report.notes, True, self._recover_unjudged(past))

    def _begun(self, end_ns: int) -> Span:
        """Where judging began, and how far it came. It starts over with the last hour of an old
        recording, of one that was not judged for longer, and of one whose clock was set back.
        """
        judged = self._judged
        if judged is None or not end_ns - _HOUR_NS <= judged[1] <= end_ns + BEFORE_NS:
            starts_ns = [segment_start_ns(one.name) for one in self._catalog.segments]
            self._stretch_ns = max(min(starts_ns), end_ns - _HOUR_NS)
            self._judged = Span(self._stretch_ns, self._stretch_ns)
            self._looked_ns, self._is_past_left = 0, True
        assert self._judged is not None
        return self._judged

    def _due(
        self, end_ns: int, *, is_live: bool
    ) -> tuple[list[IncidentCandidate], list[IncidentCandidate]]:
        """Those to judge now, and all that were seen."""
        due: list[IncidentCandidate] = []
        candidates: list[IncidentCandidate] = []

        def note(candidate: IncidentCandidate) -> bool:
            candidates.append(candidate)
            if self._plan.is_due(candidate, end_ns, is_live=is_live):
                due.append(candidate)
            return False

        _diagnose(self._store, Span(end_ns - _LOOK_BACK_NS, end_ns + 1), note)
        return due, candidates

    def _end_incidents(
        self, candidates: Sequence[IncidentCandidate], end_ns: int
    ) -> list[LedgerEntry]:
        """What was judged with nearly all of it in view is over: that needs no second verdict."""
        judgement = Judgement(end_ns - _LOOK_BACK_NS, end_ns, True, (), candidates)
        going_on = [one for one in self._ledger.incidents() if one.state is IncidentState.OPEN]
        over = [
            entry
            for entry in going_on
            if (own := [one for one in candidates if is_same(one, entry.incident)])
            and all(judgement.is_over(one.to_ns) for one in own)
        ]
        return changes(over, judgement, self._ledger.revision)

    def _recent(self, end_ns: int) -> list[LedgerEntry]:
        """Incidents that a judgement of now would see, with what was before them."""
        from_ns = end_ns - _HOUR_NS + BEFORE_NS
        known = self._ledger.entries.values()
        return [one for one in known if from_ns <= one.incident.from_ns]

    def _judge(
        self,
        fresh: Span,
        due: Sequence[IncidentCandidate],
        again: Sequence[LedgerEntry],
        *,
        is_live: bool,
    ) -> Round:
        """`due` are those that the look found: the longer stretch may cut them otherwise. `again`
        are known, and more is known of them now.
        """
        end_ns = fresh.to_ns
        candidates: list[IncidentCandidate] = []
        wanted_now: list[IncidentCandidate] = []

        def wanted(candidate: IncidentCandidate) -> bool:
            candidates.append(candidate)
            is_due = self._plan.is_due(candidate, end_ns, is_live=is_live)
            if is_due := is_due or any(is_same(candidate, one.incident) for one in again):
                wanted_now.append(candidate)
            return is_due

        known = self._ledger.entries.values()
        open_ns = [one.incident.from_ns for one in known if one.state is IncidentState.OPEN]
        again_ns = [one.incident.from_ns for one in again]
        from_ns = min([self._stretch_ns, *open_ns, *again_ns]) - BEFORE_NS
        span = self._without_fatal(Span(max(from_ns, end_ns - _HOUR_NS), end_ns + 1), fresh)
        report = _diagnose(self._store, span, wanted)
        if end_ns - self._stretch_ns >= _STRETCH_NS:
            self._stretch_ns = end_ns
        if isinstance(report, str):
            return Round((), fresh, is_judged=True, unjudged=[UnjudgedStretch(fresh, report)])
        for candidate in [*wanted_now, *due]:
            self._plan.note(candidate, end_ns, is_live=is_live)
        judgement = Judgement(span.from_ns, end_ns, is_live, report.wrong, candidates)
        entries = changes(known, judgement, self._ledger.revision)
        after_all = self._recover_unjudged(span)
        return Round(entries, fresh, report.notes, True, after_all)

    def _is_fatal(self, span: Span) -> bool:
        deaths = self._ledger.deaths
        on_it = [one for one in deaths if one.from_ns < span.to_ns and span.from_ns < one.to_ns]
        return len(on_it) >= _MOST_DEATHS

    def _without_fatal(self, around: Span, span: Span) -> Span:
        """What lies around a span, up to the stretches that were left out."""
        fatal = [one.span for one in self._ledger.unjudged if one.why == _FATAL]
        ends_ns = [one.to_ns for one in fatal if one.to_ns <= span.from_ns]
        starts_ns = [one.from_ns for one in fatal if one.from_ns >= span.to_ns]
        return Span(max([around.from_ns, *ends_ns]), min([around.to_ns, *starts_ns]))

    def _recover_unjudged(self, span: Span) -> list[UnjudgedStretch]:
        unjudged = self._ledger.unjudged
        return [UnjudgedStretch(one.span) for one in unjudged if includes(span, one.span)]


def _end_ns(catalog: Catalog) -> int:
    """How far the recording reaches: by what is being recorded, else by all of it."""
    live = [one for one in catalog.segments if one.is_live] or catalog.segments
    return max((catalog.reader(one).span[1] for one in live), default=0)


def _diagnose(store: Store, span: Span, wanted: Wanted | None) -> Report | str:
    """A text says why it was not judged. A segment that was sealed meanwhile is read once more."""
    try:
        try:
            with store.catalog.held():
                return diagnose(store, span=span, wanted=wanted)
        except SegmentGoneError:
            store.catalog.refresh()
            return diagnose(store, span=span, wanted=wanted)
    except NecroscopeError as error:
        return error.facts
    except Exception as error:  # noqa: BLE001 - the next stretch is judged all the same
        return f"{type(error).__name__}: {error}"
