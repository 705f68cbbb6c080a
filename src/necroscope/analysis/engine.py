"""From a recording to a report: episodes over the whole span from the cheap tables, then samples around each incident only."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final

from necroscope.analysis.case import Case
from necroscope.analysis.causes import all_causes
from necroscope.analysis.correlate import Gathered, JoinedEvent, asked, gather
from necroscope.analysis.detect import busiest_core, detect
from necroscope.analysis.episodes import SUFFERING, Episode, Span
from necroscope.analysis.happenings import happenings
from necroscope.analysis.node import Node
from necroscope.analysis.quality import lacking, shortcomings
from necroscope.analysis.recording import Recording
from necroscope.analysis.report import EpisodeSeen, EventSeen, Incident, Report
from necroscope.analysis.stacks import SOFTIRQ
from necroscope.analysis.verdict import NAMED, decide
from necroscope.model.units import NS_PER_S, format_moment

Progress = Callable[[float], None]
# So much is looked at together, so that memory stays bounded; stretches overlap by what an incident may need around it.
STRETCH_NS: Final = 3600 * NS_PER_S
_MARGIN_NS: Final = 180 * NS_PER_S
# Weak candidates are many on a busy node; the heaviest are looked at.
_MOST_WEAK: Final = 40
_MOST_STRONG: Final = 120
# A core in the kernel for a moment is nobody's incident unless something suffered or a cause is found.
_HELD_S: Final = 3.0
_AROUND_NS: Final = 5 * NS_PER_S
_MOSTLY: Final = 0.5


def diagnose(
    recording: Recording, at_ns: int | None = None, span: Span | None = None, progress: Progress | None = None
) -> Report:
    """All incidents of a recording or of a stretch of it, or with `at_ns` what happened around that moment."""
    info = recording.info()
    if info.from_ns is None or info.to_ns is None:
        return Report(info.schema, info.node, None, None, (), (), ("nothing is recorded yet",))
    whole = info.from_ns, info.to_ns + 1
    if span is not None:
        whole = max(whole[0], span[0]), min(whole[1], span[1])
    incidents: list[Incident] = []
    notes: list[str] = []
    stretches = [_around(at_ns, whole)] if at_ns is not None else list(_stretches(whole))
    for number, (around, own) in enumerate(stretches):
        node = Node(recording, around)
        notes += [note for note in lacking(node) if note not in notes]
        for part, found in _incidents(node, own, at_ns):
            incidents += [found] if found else []
            if progress is not None:
                progress((number + part) / len(stretches))
    numbered = (replace(one, id=f"{format_moment(one.from_ns)}-{_place(one)}") for one in incidents)
    gaps = tuple(recording.gaps(*whole))
    return Report(info.schema, info.node, *whole, tuple(sorted(numbered, key=lambda one: one.from_ns)), gaps, tuple(notes))


def _incidents(node: Node, own: Span, at_ns: int | None) -> Iterator[tuple[float, Incident | None]]:
    """With how much of the stretch is done, each candidate that turned out to be an incident."""
    node.episodes = detect(node)
    gathered = gather(node.episodes, happenings(node.columns("events")), node.columns("interrupts"))
    if at_ns is not None:
        core = busiest_core(node, (at_ns - _AROUND_NS, at_ns + _AROUND_NS))
        chosen: Sequence[Gathered] = [asked(gathered, at_ns, _AROUND_NS, *core)]
    else:
        chosen = _chosen([one for one in gathered if own[0] <= one.span[0] < own[1]])
    for place, one in enumerate(chosen):
        yield (place + 1) / len(chosen), _judged(Case(node, one))


def _chosen(gathered: Sequence[Gathered]) -> list[Gathered]:
    strong = sorted((one for one in gathered if one.is_strong), key=lambda one: -one.weight)[:_MOST_STRONG]
    weak = sorted((one for one in gathered if not one.is_strong), key=lambda one: -one.weight)[:_MOST_WEAK]
    return [*strong, *weak]


def _judged(case: Case) -> Incident | None:
    """None if it is no incident: weak and without a cause."""
    _refine_mode(case)
    verdict, alternatives = decide(case, all_causes(), shortcomings(case))
    if verdict.confidence < NAMED and not _matters(case):
        return None
    return Incident(
        id="",
        from_ns=case.window[0],
        to_ns=case.window[1],
        core=case.core,
        mode=case.mode,
        events=tuple(_event_seen(event) for event in case.events),
        episodes=tuple(_episode_seen(episode) for episode in case.episodes),
        verdict=verdict,
        alternatives=alternatives,
    )


def _refine_mode(case: Case) -> None:
    """Without IRQ_TIME_ACCOUNTING softirqs are booked as whatever the tick finds; samples see them."""
    if case.mode in ("system", None) and case.core is not None and case.now.total and case.now.share(SOFTIRQ) >= _MOSTLY:
        case.mode = "softirq"


def _matters(case: Case) -> bool:
    """Whether it is an incident even if nobody knows why."""
    if case.is_asked:
        return True
    if not case.gathered.is_strong:
        return False
    is_event = any(event.happening.is_major for event in case.events)
    is_suffering = any(episode.is_strong and episode.kind in SUFFERING for episode in case.episodes)
    return is_event or is_suffering or case.seconds >= _HELD_S


def _stretches(whole: Span) -> Iterator[tuple[Span, Span]]:
    """What is read together, and the part of it whose incidents it reports."""
    count = max(1, round((whole[1] - whole[0]) / STRETCH_NS))
    bounds = [whole[0] + (whole[1] - whole[0]) * place // count for place in range(count + 1)]
    for from_ns, to_ns in pairwise(bounds):
        yield (max(whole[0], from_ns - _MARGIN_NS), min(whole[1], to_ns + _MARGIN_NS)), (from_ns, to_ns)


def _around(at_ns: int, whole: Span) -> tuple[Span, Span]:
    span = max(whole[0], at_ns - 4 * _MARGIN_NS), min(whole[1], at_ns + _MARGIN_NS)
    return span, span


def _place(incident: Incident) -> str:
    return "node" if incident.core is None else f"core{incident.core}"


def _event_seen(event: JoinedEvent) -> EventSeen:
    what = event.happening
    return EventSeen(what.time_ns, what.kind, event.core, what.device, event.queue, event.joined_by, what.message)


def _episode_seen(episode: Episode) -> EpisodeSeen:
    return EpisodeSeen(episode.kind.value, episode.cpu, episode.mode, episode.from_ns, episode.to_ns, episode.text, episode.table)
