"""The incidents of a recording for those who read it once: from the ledger as far as it reaches,
judged now beyond it.
"""

from collections.abc import Sequence
from pathlib import Path

from necroscope.analysis.engine import Progress, concerns, diagnose
from necroscope.analysis.report import Incident, Report
from necroscope.model.definitions import OVER_NS
from necroscope.model.span import Span
from necroscope.store.query import Store
from necroscope.verdicts.changes import Judgement, changes, is_same
from necroscope.verdicts.follower import BEFORE_NS, Follower
from necroscope.verdicts.ledger import Ledger


def read_report(
    store: Store,
    since_ns: int = 0,
    progress: Progress | None = None,
    core: int | None = None,
) -> Report:
    """All incidents of a recording since then. One that has no ledger, or the ledger of another
    version, is judged whole.
    """
    ledger = Ledger.open(store.catalog.directory)
    first_ns, last_ns = store.span()
    first_ns = max(first_ns, since_ns)
    if ledger.judged is None or not ledger.covers(first_ns):
        span = Span(first_ns, last_ns + 1) if since_ns else None
        return diagnose(store, span=span, progress=progress, core=core)
    settled_ns, notes = ledger.judged[1] - OVER_NS, ledger.notes
    notes += tuple(str(one) for one in ledger.unjudged if one.span.to_ns > first_ns)
    if last_ns > ledger.judged[1]:
        rest = diagnose(
            store,
            span=Span(settled_ns - BEFORE_NS, last_ns + 1),
            progress=progress,
            wanted=lambda candidate: candidate.to_ns > settled_ns,
        )
        is_live = _is_recorded(store.catalog.directory)
        judgement = Judgement(settled_ns - BEFORE_NS, last_ns, is_live, rest.wrong)
        ledger.take(changes(ledger.entries.values(), judgement, ledger.revision))
        notes = tuple(dict.fromkeys([*notes, *rest.notes]))
    info = store.info()
    found = [entry.incident for entry in ledger.incidents()]
    own = [one for one in found if one.to_ns >= first_ns and (core is None or concerns(one, core))]
    whole = first_ns, last_ns + 1
    gaps = tuple(store.gaps(*whole))
    return Report(info.schema, info.node, *whole, tuple(own), gaps, notes, None, core)


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
