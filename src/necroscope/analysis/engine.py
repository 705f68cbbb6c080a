"""From a recording to a report: episodes over the whole span from the cheap tables, then samples
around each incident only.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final
from zlib import crc32

from necroscope.analysis.case import Case, case_of
from necroscope.analysis.clusters import Cluster, around_moment, gather
from necroscope.analysis.detect import busiest_core, detect
from necroscope.analysis.gap_notes import is_damage
from necroscope.analysis.happenings import counted_timeouts, happenings
from necroscope.analysis.incidents import incident_of, weigh_all
from necroscope.analysis.node import Node
from necroscope.analysis.quality import lacking
from necroscope.analysis.recording import Recording
from necroscope.analysis.report import Incident, Report
from necroscope.analysis.stretches import STRETCH_NS, OpenIncident, carry_on, goes_on, stretches
from necroscope.errors import CorruptData, NecroscopeError, RecordingError
from necroscope.model.span import Span
from necroscope.model.units import NS_PER_S, format_moment

Progress = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class IncidentCandidate:
    """What may be an incident, before a cause is sought: from cheap tables alone."""

    from_ns: int
    to_ns: int
    core: int | None
    events: int
    is_strong: bool
    subject: str | None = None


Wanted = Callable[[IncidentCandidate], bool]
# Weak candidates are many on a busy node; the heaviest are looked at.
_MOST_WEAK: Final = 40
_MOST_STRONG: Final = 120
_AROUND_NS: Final = 5 * NS_PER_S
# How many incidents near a moment that was asked about are judged, and how many other cores are
# named.
_MOST_ASKED: Final = 8
_MOST_ALSO: Final = 8


def diagnose(
    recording: Recording,
    at_ns: int | None = None,
    span: Span | None = None,
    progress: Progress | None = None,
    core: int | None = None,
    wanted: Wanted | None = None,
) -> Report:
    """All incidents of a recording or of a stretch of it, or with `at_ns` what happened around that
    moment; all or on a core. `wanted` sees every candidate and says which of them to judge.
    """
    info = recording.info()
    if (
        info.from_ns is None
        or info.to_ns is None
        or not (info.tables or recording.gaps(info.from_ns, info.to_ns + 1))
    ):
        return Report(info.schema, info.node, None, None, (), (), ("nothing is recorded yet",))
    extent = Span(info.from_ns, info.to_ns + 1)
    if span is not None:
        extent = Span(max(extent[0], span[0]), min(extent[1], span[1]))
    notes: list[str] = []
    found = (
        _incidents(cases(recording, extent, notes, progress, wanted))
        if at_ns is None
        else _about(recording, extent, at_ns, core, notes)
    )
    incidents = [one for one in found if core is None or at_ns is not None or concerns(one, core)]
    numbered = (replace(one, id=f"{format_moment(one.from_ns)}-{_place(one)}") for one in incidents)
    ordered = tuple(sorted(numbered, key=lambda one: one.from_ns))
    return Report(
        info.schema,
        info.node,
        *extent,
        ordered,
        tuple(recording.gaps(*extent)),
        tuple(notes),
        at_ns,
        core,
    )


def cases(
    recording: Recording,
    extent: Span,
    notes: list[str],
    progress: Progress | None = None,
    wanted: Wanted | None = None,
) -> Iterator[Case]:
    """Stretch by stretch; what goes on beyond the end of one is carried on to the next, and is one
    case when it is over.
    """
    still_open: list[OpenIncident] = []
    parts = list(stretches(extent))
    is_read = False
    for number, (around, own) in enumerate(parts):
        node = _node(recording, around, notes)
        is_read = is_read or not node.is_blank
        found = [one for one in _clusters(node) if one.span[1] > own[0] and one.span[0] < own[1]]
        found = [one for one in found if wanted is None or wanted(_candidate(one))]
        still_open, fresh = carry_on(still_open, found)
        over = [one for one in still_open if not goes_on(one.cluster, own, extent)]
        chosen = _select(fresh, notes)
        here = [one for one in chosen if not goes_on(one, own, extent)]
        for place, case in enumerate(
            [*_cases(recording, over), *(case_of(node, one) for one in here)]
        ):
            yield case
            if progress is not None:
                progress((number + (place + 1) / (len(over) + len(here))) / len(parts))
        still_open = [one for one in still_open if one not in over]
        still_open += [
            OpenIncident(around, node.episodes, one) for one in chosen if one not in here
        ]
    if not is_read:
        raise _unreadable(recording, extent)


def _incidents(found: Iterator[Case]) -> Iterator[Incident]:
    for case in found:
        incident = incident_of(case, weigh_all(case))
        if incident is not None:
            yield incident


def _about(
    recording: Recording, extent: Span, at_ns: int, core: int | None, notes: list[str]
) -> Iterator[Incident]:
    """What happened around a moment, also if nothing was wrong."""
    around = Span(max(extent[0], at_ns - STRETCH_NS // 2), min(extent[1], at_ns + STRETCH_NS // 2))
    node = _node(recording, around, notes)
    if node.is_blank:
        raise _unreadable(recording, around)
    found = around_moment(_clusters(node), at_ns, _AROUND_NS, core)[:_MOST_ASKED]
    if not found:
        span = Span(at_ns - _AROUND_NS, at_ns + _AROUND_NS)
        found = [
            Cluster(
                span, *busiest_core(node, span, core), (), (), is_strong=False, is_question=True
            )
        ]
    best: Incident | None = None
    for one in found:
        # What is weak is often nothing, and what the question is about may be some seconds off.
        case = case_of(node, one)
        incident = incident_of(case, weigh_all(case))
        if incident is not None and (best is None or incident.is_wrong):
            best = incident
        if best is not None and best.is_wrong:
            break
    if best is not None:
        notes += _other_cores(node, at_ns, best.core) if core is None else ()
        yield best


def _other_cores(node: Node, at_ns: int, reported: int | None) -> list[str]:
    """Other cores on which something was wrong at the same moment."""
    there = {
        episode.cpu
        for episode in node.episodes
        if episode.is_strong and episode.from_ns <= at_ns <= episode.to_ns
    }
    others = sorted(cpu for cpu in there if cpu is not None and cpu != reported)
    if not others:
        return []
    more = f" and {len(others) - _MOST_ALSO} more" if len(others) > _MOST_ALSO else ""
    return [
        (
            f"also at that moment: core {', '.join(map(str, others[:_MOST_ALSO]))}{more}; ask about"
            " one with --at and --cpu"
        )
    ]


def _unreadable(recording: Recording, span: Span) -> NecroscopeError:
    """Where nothing can be read nothing can be said, least of all that there was no incident."""
    damage = [gap.cause for gap in recording.gaps(*span) if is_damage(gap)]
    if damage:
        return CorruptData(
            f"nothing of it can be read: {damage[0]}", "diagnose another copy or an older recording"
        )
    between = f"{format_moment(span[0])} to {format_moment(span[1])}"
    facts = f"nothing was recorded about the node from {between}"
    return RecordingError(facts, "record on the node with `necroscope record`, or import samples")


def _node(recording: Recording, around: Span, notes: list[str]) -> Node:
    node = Node(recording, around)
    notes += [note for note in lacking(node) if note not in notes]
    node.episodes = detect(node)
    return node


def _clusters(node: Node) -> list[Cluster]:
    logged = happenings(node.columns("events"))
    found = [*logged, *counted_timeouts(node.device_rises, logged)]
    found.sort(key=lambda one: one.time_ns)
    return gather(node.episodes, found, node.columns("interrupts"))


def _candidate(one: Cluster) -> IncidentCandidate:
    return IncidentCandidate(*one.span, one.core, len(one.events), one.is_strong, one.subject)


def _cases(recording: Recording, over: Sequence[OpenIncident]) -> Iterator[Case]:
    """Judged with the rows of the stretch they began in, which are read once more."""
    node: Node | None = None
    for one in over:
        if node is None or node.span != one.stretch:
            node = Node(recording, one.stretch)
            node.episodes = one.episodes
        yield case_of(node, one.cluster)


def _select(clusters: Sequence[Cluster], notes: list[str]) -> list[Cluster]:
    strong = sorted((one for one in clusters if one.is_strong), key=lambda one: -one.weight)
    # What hurts something is looked at before what is only heavier.
    weak = sorted(
        (one for one in clusters if not one.is_strong),
        key=lambda one: (not one.has_victim, -one.weight),
    )
    if len(strong) > _MOST_STRONG:
        first = format_moment(min(one.span[0] for one in strong))
        notes.append(
            f"{len(strong)} incidents in the hour from {first}: only the {_MOST_STRONG} heaviest"
            " were looked at; ask about a moment with --at"
        )
    return [*strong[:_MOST_STRONG], *weak[:_MOST_WEAK]]


def concerns(incident: Incident, core: int) -> bool:
    """An incident of several cores names one of them first; it is the others' as well."""
    return incident.core in (core, None) or any(
        episode.core == core for episode in incident.episodes
    )


def _place(incident: Incident) -> str:
    """Part of its id: two that begin at the same moment on no core are told apart by what was
    waited for.
    """
    if incident.core is not None:
        return f"core{incident.core}"
    what = incident.subject
    return "node" if what is None else f"node-{crc32(what.encode()) & 0xFFFF:04x}"
