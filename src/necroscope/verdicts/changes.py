"""What a judgement changes in the ledger: what is new, what is the same incident, what is over,
what was part of another. No I/O: incidents in, entries out.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from necroscope.analysis.report import Incident
from necroscope.model.definitions import OVER_NS
from necroscope.model.units import NS_PER_S
from necroscope.verdicts.entry import IncidentState, LedgerEntry, bounded

# The analysis of another stretch may see the same beginning or end a tick earlier or later.
TICK_NS: Final = NS_PER_S


class IncidentExtent(Protocol):
    """Something that has a core, or none, and a time; and maybe what tasks waited for."""

    @property
    def core(self) -> int | None: ...

    @property
    def subject(self) -> str | None: ...

    @property
    def from_ns(self) -> int: ...

    @property
    def to_ns(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Judgement:
    """The incidents of a stretch that were judged, and every candidate that was seen, judged or
    not. A recorder that runs may make one longer.
    """

    from_ns: int
    end_ns: int
    is_live: bool
    incidents: Sequence[Incident]
    candidates: Sequence[IncidentExtent] = ()

    def is_over(self, to_ns: int) -> bool:
        return not self.is_live or to_ns < self.end_ns - OVER_NS


def is_same(one: IncidentExtent, other: IncidentExtent) -> bool:
    """As two analyses see one incident. Which of two are one is the analysis's decision: here they
    must overlap.
    """
    is_alike = one.core == other.core and one.subject == other.subject
    return is_alike and _overlap(one, other)


def _overlap(one: IncidentExtent, other: IncidentExtent) -> bool:
    return one.from_ns <= other.to_ns + TICK_NS and other.from_ns <= one.to_ns + TICK_NS


def changes(known: Iterable[LedgerEntry], judgement: Judgement, revision: int) -> list[LedgerEntry]:
    """Entries to append. `known` are those of the ledger, in any order, `revision` is its highest
    so far.
    """
    entries = {one.id: one for one in known if one.state is not IncidentState.MERGED}
    changed: dict[str, LedgerEntry] = {}
    revision = max(judgement.end_ns, revision + 1)

    def note(entry: LedgerEntry) -> None:
        nonlocal revision
        entries[entry.id] = changed[entry.id] = replace(entry, revision=revision)
        revision += 1

    for incident in sorted(judgement.incidents, key=lambda one: one.from_ns):
        same = sorted(
            (one for one in entries.values() if is_same(one.incident, incident)),
            key=lambda one: one.incident.from_ns,
        )
        first = same[0] if same else None
        entry = _entry(first, incident, judgement)
        if first is None or _differs(first, entry):
            note(entry)
        for other in same[1:]:
            note(replace(other, state=IncidentState.MERGED, merged_into=entry.id))
    for entry in [one for one in entries.values() if one.state is IncidentState.OPEN]:
        if entry.id in changed:
            continue
        seen = [one.to_ns for one in judgement.candidates if is_same(one, entry.incident)]
        to_ns = max([entry.incident.to_ns, *seen])
        longer = replace(entry, incident=replace(entry.incident, to_ns=to_ns))
        if judgement.is_over(to_ns):
            note(_end(longer, judgement, entries.values()))
        elif _differs(entry, longer):
            note(longer)
    return list(changed.values())


def _entry(known: LedgerEntry | None, incident: Incident, judgement: Judgement) -> LedgerEntry:
    """A verdict replaces the one before it only if it was made with the whole incident in view."""
    state = IncidentState.CLOSED if judgement.is_over(incident.to_ns) else IncidentState.OPEN
    if known is None:
        return LedgerEntry(state, 0, bounded(incident), judged_ns=judgement.end_ns)
    before = known.incident
    sees_all = incident.from_ns <= before.from_ns + OVER_NS
    whole = replace(
        bounded(incident) if sees_all else before,
        id=before.id,
        from_ns=min(before.from_ns, incident.from_ns),
        to_ns=max(before.to_ns, incident.to_ns),
    )
    judged_ns = judgement.end_ns if sees_all else known.judged_ns
    return LedgerEntry(state, known.revision, whole, judged_ns=judged_ns)


def _end(entry: LedgerEntry, judgement: Judgement, others: Iterable[LedgerEntry]) -> LedgerEntry:
    """With more to compare, what was open may be part of another incident; else it was reported,
    and so is its end.
    """
    if entry.incident.from_ns >= judgement.from_ns:
        for other in others:
            is_new = any(one.from_ns == other.incident.from_ns for one in judgement.incidents)
            if is_new and other.id != entry.id and _includes(other.incident, entry.incident):
                return replace(entry, state=IncidentState.MERGED, merged_into=other.id)
    return replace(entry, state=IncidentState.CLOSED)


def _includes(one: Incident, other: Incident) -> bool:
    cores = {one.core, *(episode.core for episode in one.episodes)}
    return _overlap(one, other) and (other.core in cores or one.core is None)


def _differs(before: LedgerEntry, now: LedgerEntry) -> bool:
    """Whether a reader of the ledger would want to know."""
    one, other = before.incident, now.incident
    return (
        before.state is not now.state
        or other.to_ns > one.to_ns + TICK_NS
        or one.verdict.answer != other.verdict.answer
        or len(other.events) > len(one.events)
    )
