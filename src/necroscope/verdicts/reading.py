"""The incidents of a recording for those who read it once: from the ledger as far as it reaches,
judged now beyond it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from necroscope.analysis.engine import Progress, concerns, diagnose
from necroscope.analysis.report import Incident, Report
from necroscope.model.definitions import OVER_NS
from necroscope.model.span import Span
from necroscope.store.query import Store
from necroscope.verdicts.changes import Judgement, changes, is_same
from necroscope.verdicts.follower import BEFORE_NS, Follower
from necroscope.verdicts.ledger import Ledger
from necroscope.verdicts.provisional import ProvisionalVerdicts

# So many of a recording are completed when it is opened, the newest.
_MOST_AGAIN: Final = 20


def read_report(
    store: Store,
    since_ns: int = 0,
    progress: Progress | None = None,
    core: int | None = None,
) -> Report:
    """All incidents of a recording since then. One that has no ledger, or the ledger of other
    rules, is judged whole, under the ids that the ledger knows.
    """
    ledger = Ledger.open(store.catalog.directory)
    first_ns, last_ns = store.span()
    extent = Span(max(first_ns, since_ns), last_ns + 1)
    if ledger.judged is None or not ledger.covers(extent.from_ns):
        report = diagnose(store, span=extent if since_ns else None, progress=progress, core=core)
        known = {one.id: one.incident for one in ledger.incidents()}
        return replace(
            report, incidents=tuple(_with_known_id(one, known) for one in report.incidents)
        )
    notes = ledger.notes
    notes += tuple(str(one) for one in ledger.unjudged if one.span.to_ns > extent.from_ns)
    notes += _judge_rest(store, ledger, last_ns, progress)
    _judge_again(store, ledger, last_ns)
    info = store.info()
    found = [entry.incident for entry in ledger.incidents() if entry.incident.to_ns >= extent[0]]
    own = [one for one in found if core is None or concerns(one, core)]
    gaps = tuple(store.gaps(*extent))
    notes = tuple(dict.fromkeys(notes))
    return Report(info.schema, info.node, *extent, tuple(own), gaps, notes, None, core)


def _with_known_id(incident: Incident, known: Mapping[str, Incident]) -> Incident:
    same = (name for name, other in known.items() if is_same(other, incident))
    return replace(incident, id=next(same, incident.id))


def _judge_rest(
    store: Store, ledger: Ledger, last_ns: int, progress: Progress | None
) -> tuple[str, ...]:
    """What was recorded since the ledger was last written; returns notes on it."""
    if ledger.judged is None or last_ns <= ledger.judged[1]:
        return ()
    settled_ns = ledger.judged[1] - OVER_NS
    rest = diagnose(
        store,
        span=Span(settled_ns - BEFORE_NS, last_ns + 1),
        progress=progress,
        wanted=lambda candidate: candidate.to_ns > settled_ns,
    )
    is_live = _is_recorded(store.catalog.directory)
    judgement = Judgement(settled_ns - BEFORE_NS, last_ns, is_live, rest.wrong)
    ledger.take(changes(ledger.entries.values(), judgement, ledger.revision))
    return rest.notes


def _judge_again(store: Store, ledger: Ledger, last_ns: int) -> None:
    """Verdicts completed by rows that came after the last process kept the ledger."""
    due = ProvisionalVerdicts(store).due(ledger.incidents(), last_ns)
    for entry in due[-_MOST_AGAIN:]:
        known = entry.incident
        end_ns = min(last_ns, known.to_ns + BEFORE_NS)
        span = Span(known.from_ns - BEFORE_NS, end_ns + 1)
        again = diagnose(store, span=span, wanted=partial(is_same, known))
        judgement = Judgement(known.from_ns, end_ns, is_live=False, incidents=again.wrong)
        ledger.take(changes([entry], judgement, ledger.revision))


def read_incidents(store: Store, span: Span) -> Sequence[Incident]:
    """Those that touch the span, judged only if the ledger does not reach over it, and then under
    the ids that the ledger knows.
    """
    ledger = Ledger.open(store.catalog.directory)
    end_ns = min(span.to_ns, store.span()[1])
    if ledger.judged is None or not ledger.covers(span.from_ns) or ledger.judged[1] < end_ns:
        judged = diagnose(store, span=span).wrong
        judgement = Judgement(span.from_ns, end_ns, is_live=False, incidents=judged)
        ledger.take(changes(ledger.entries.values(), judgement, ledger.revision))
        known = [entry.incident for entry in ledger.incidents()]
        return [one for one in known if any(is_same(one, other) for other in judged)]
    found = [entry.incident for entry in ledger.incidents()]
    return [one for one in found if one.to_ns >= span.from_ns and one.from_ns < span.to_ns]


def current_ledger(directory: Path) -> Ledger:
    """The ledger as it is kept; where no process keeps it, with the last hour judged now."""
    from necroscope.verdicts.ledger_writer import is_kept  # noqa: PLC0415 - Unix only

    ledger = Ledger.open(directory)
    if not is_kept(directory):
        found = Follower(directory, ledger).look(is_live=_is_recorded(directory))
        if found is not None:
            ledger.take(found.entries)
            ledger.judged = found.judged
    return ledger


def _is_recorded(directory: Path) -> bool:
    try:
        from necroscope.segment.lock import is_recorded  # noqa: PLC0415 - Unix only
    except ImportError:
        return False
    return is_recorded(directory)
