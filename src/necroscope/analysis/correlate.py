"""Joins episodes and events into what belongs together in time, core and queue: the incidents to be explained.

A network reset is joined to its core by the best evidence there is, and says which: the driver's own word, else its queue's
interrupt, else the only core with an episode. One driver (ENA 2.17.0) prints core and queue in each other's place; where the
interrupts say so, they are put right.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from necroscope.analysis.columns import Columns
from necroscope.analysis.episodes import SUFFERING, Episode, Kind, Span, touches
from necroscope.analysis.happenings import Happening
from necroscope.analysis.queue_cores import core_of_queue
from necroscope.model.units import NS_PER_S

ACTIVE: Final = frozenset({Kind.SATURATED, Kind.ELEVATED, Kind.USER_BUSY})
# Bursts on one core every few seconds are one incident; what happens on other cores belongs to it only at the same time.
_BURSTS_NS: Final = 20 * NS_PER_S
_TOUCH_NS: Final = 2 * NS_PER_S
_OVERLAP: Final = 0.5

BY_DRIVER: Final = "the line names the core"
BY_QUEUE: Final = "queue, interrupt and the core that takes it"
BY_EPISODE: Final = "the only core with an episode at that time"


@dataclass(frozen=True, slots=True)
class JoinedEvent:
    """An event with the core it was joined to; `joined_by` says by what evidence."""

    happening: Happening
    core: int | None
    queue: int | None
    joined_by: str | None

    @property
    def kind(self) -> str:
        return self.happening.kind

    @property
    def time_ns(self) -> int:
        return self.happening.time_ns

    @property
    def fields(self) -> dict[str, object]:
        return self.happening.fields


@dataclass(frozen=True, slots=True)
class Gathered:
    """What belongs together. `is_strong`: it is an incident whether or not a cause is found."""

    span: Span
    core: int | None
    mode: str | None
    episodes: tuple[Episode, ...]
    events: tuple[JoinedEvent, ...]
    is_strong: bool
    is_asked: bool = False

    @property
    def weight(self) -> float:
        return sum(episode.weight for episode in self.episodes) + 100.0 * len(self.events)


def gather(episodes: Sequence[Episode], found: Sequence[Happening], interrupts: Columns) -> list[Gathered]:
    """Incidents in order of time; weak ones are candidates that need a cause with its confirming signal."""
    strong = _clusters([episode for episode in episodes if episode.is_strong])
    weak = [episode for episode in episodes if not episode.is_strong]
    left: list[Episode] = []
    for episode in weak:
        home = next((cluster for cluster in strong if any(_belongs(episode, other) for other in cluster)), None)
        home.append(episode) if home is not None else left.append(episode)
    clusters = [*strong, *_clusters(left)]
    events: list[list[JoinedEvent]] = [[] for _ in clusters]
    alone: list[JoinedEvent] = []
    for happening in found:
        event = join(happening, episodes, interrupts)
        place = _home(event, clusters)
        if place is not None:
            events[place].append(event)
        elif happening.is_major:
            alone.append(event)
    gathered = [_gathered(cluster, own) for cluster, own in zip(clusters, events, strict=True)]
    gathered += [_gathered([], group) for group in _event_groups(alone)]
    return sorted(gathered, key=lambda one: one.span)


def join(happening: Happening, episodes: Iterable[Episode], interrupts: Columns) -> JoinedEvent:
    """An event and its core, by the best evidence there is."""
    core, queue = happening.core, happening.queue
    if core is not None:
        if queue is not None and queue != core and _is_swapped(happening, core, queue, interrupts):
            return JoinedEvent(happening, queue, core, f"{BY_DRIVER}, with core and queue in each other's place")
        return JoinedEvent(happening, core, queue, BY_DRIVER)
    if queue is not None:
        core = core_of_queue(interrupts, happening.device, queue, happening.time_ns)
        if core is not None:
            return JoinedEvent(happening, core, queue, BY_QUEUE)
    if happening.is_of_the_device:
        return JoinedEvent(happening, None, queue, None)
    span = happening.began_ns, happening.time_ns
    cores = {e.cpu for e in episodes if e.cpu is not None and e.is_strong and touches(e.span, span)}
    only = cores.pop() if len(cores) == 1 else None
    return JoinedEvent(happening, only, queue, BY_EPISODE if only is not None else None)


def _is_swapped(happening: Happening, core: int, queue: int, interrupts: Columns) -> bool:
    """The interrupts say that the queue of that number is another core's, and that the other way round it fits."""
    said = core_of_queue(interrupts, happening.device, queue, happening.time_ns)
    turned = core_of_queue(interrupts, happening.device, core, happening.time_ns)
    return said != core and turned == queue and str(happening.pattern or "").startswith("ena.lost_tx")


def _clusters(episodes: Sequence[Episode]) -> list[list[Episode]]:
    """Episodes that belong together, also by way of a third."""
    clusters: list[list[Episode]] = []
    for episode in sorted(episodes, key=lambda one: one.from_ns):
        near = [cluster for cluster in clusters if any(_belongs(episode, other) for other in cluster)]
        for other in near[1:]:
            near[0].extend(other)
            clusters.remove(other)
        near[0].append(episode) if near else clusters.append([episode])
    return clusters


def _belongs(one: Episode, other: Episode) -> bool:
    if one.cpu == other.cpu or one.cpu is None or other.cpu is None:
        is_burst = one.kind in ACTIVE and other.kind in ACTIVE and one.mode == other.mode and one.cpu is not None
        return touches(one.span, other.span, _BURSTS_NS if is_burst else _TOUCH_NS)
    shared_ns = min(one.to_ns, other.to_ns) - max(one.from_ns, other.from_ns)
    return shared_ns > _OVERLAP * min(one.to_ns - one.from_ns, other.to_ns - other.from_ns)


def _home(event: JoinedEvent, clusters: Sequence[Sequence[Episode]]) -> int | None:
    """The cluster an event belongs to: one with its core before one without, a strong one before a weak one."""
    if event.happening.is_of_the_device and event.core is None:
        return None
    span = event.happening.began_ns, event.time_ns + _TOUCH_NS
    best: tuple[tuple[bool, bool, float], int] | None = None
    for place, cluster in enumerate(clusters):
        own = [episode for episode in cluster if touches(episode.span, span)]
        if not own or (event.core is not None and not any(e.cpu in (event.core, None) for e in own)):
            continue
        rank = any(e.cpu == event.core for e in own), any(e.is_strong for e in own), sum(e.weight for e in own)
        best = max(best, (rank, place)) if best else (rank, place)
    return best[1] if best else None


def _event_groups(events: Sequence[JoinedEvent]) -> list[list[JoinedEvent]]:
    """Events without an episode that tell of the same trouble."""
    groups: list[list[JoinedEvent]] = []
    for event in sorted(events, key=lambda one: one.time_ns):
        last = groups[-1][-1] if groups else None
        is_near = last is not None and event.time_ns - last.time_ns <= _BURSTS_NS
        groups[-1].append(event) if is_near else groups.append([event])
    return groups


def _gathered(episodes: Sequence[Episode], events: Sequence[JoinedEvent]) -> Gathered:
    major = [event for event in events if event.happening.is_major]
    core = core_of(episodes, major)
    # What is weak may belong to it, but does not make it longer.
    telling = [episode for episode in episodes if episode.is_strong] or episodes
    spans = [episode.span for episode in telling] or [(event.happening.began_ns, event.time_ns) for event in events]
    ends = [*(span[1] for span in spans), *(event.time_ns for event in major)]
    span = min(start for start, _ in spans), max(ends)
    is_strong = bool(major) or any(episode.is_strong for episode in episodes)
    ordered = tuple(sorted(episodes, key=lambda one: (one.from_ns, one.kind)))
    return Gathered(span, core, mode_of(episodes, core), ordered, tuple(sorted(events, key=lambda e: e.time_ns)), is_strong)


def core_of(episodes: Iterable[Episode], events: Iterable[JoinedEvent]) -> int | None:
    """An event's own word first, then the core where something suffered, then the one that was held longest."""
    for event in events:
        if event.core is not None:
            return event.core
    scores: dict[int, float] = {}
    for episode in episodes:
        if episode.cpu is not None:
            factor = 3.0 if episode.kind in SUFFERING else 1.0
            scores[episode.cpu] = scores.get(episode.cpu, 0.0) + factor * episode.weight
    return max(scores, key=lambda cpu: (scores[cpu], -cpu)) if scores else None


def mode_of(episodes: Iterable[Episode], core: int | None) -> str | None:
    """The mode the core was held in longest, by strong episodes if there are any."""
    held = [episode for episode in episodes if episode.kind in ACTIVE and episode.mode and episode.cpu in (core, None)]
    held = [episode for episode in held if episode.is_strong] or held
    return max(held, key=lambda episode: episode.weight).mode if held else None


def asked(gathered: Sequence[Gathered], at_ns: int, around_ns: int, core: int | None, mode: str | None) -> Gathered:
    """What there is about a moment: the incident it lies in, else the moment itself."""
    for one in gathered:
        if one.span[0] - around_ns <= at_ns <= one.span[1] + around_ns:
            return replace(one, is_asked=True)
    return Gathered((at_ns - around_ns, at_ns + around_ns), core, mode, (), (), is_strong=True, is_asked=True)
