"""What belongs together in time, core and queue: the clusters of episodes and events that may be
incidents.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from necroscope.analysis.columns import ColumnArrays
from necroscope.analysis.episodes import (
    ACTIVE,
    SUFFERING,
    Episode,
    EpisodeKind,
    coincide,
    key_of,
    merge_episodes,
    touches,
)
from necroscope.analysis.event_cores import JoinedEvent, cores_of_device, join
from necroscope.analysis.happenings import Happening
from necroscope.analysis.held_clusters import held_clusters, is_of_what_is_held
from necroscope.analysis.periodicity import period_of_starts
from necroscope.model.span import Span
from necroscope.model.units import NS_PER_S

# Events without an episode that belong to the same trouble.
_EVENTS_NS: Final = 20 * NS_PER_S
_TOUCH_NS: Final = 2 * NS_PER_S
# What the hypervisor takes it takes now from one core, now from another.
_STEAL_NS: Final = 30 * NS_PER_S
_BURSTS_NS: Final = 20 * NS_PER_S
# A turn may be missed or come late.
_PERIODS: Final = 2.2
Key = tuple[int | None, str | None, bool]


@dataclass(frozen=True, slots=True)
class Bridges:
    """By core, mode and strength of those episodes that come at a steady beat."""

    at_a_beat_ns: dict[Key, int]

    def between(self, one: Episode, other: Episode) -> int:
        """Bursts of two programs have nothing to do with each other."""
        if (
            one.kind is EpisodeKind.BURST
            and other.kind is EpisodeKind.BURST
            and one.subject != other.subject
        ):
            return 0
        if one.is_strong != other.is_strong:
            return _BURSTS_NS
        return self.at_a_beat_ns.get(_key(one), _BURSTS_NS)


@dataclass(frozen=True, slots=True)
class Cluster:
    """What belongs together. `is_strong`: it is an incident whether or not a cause is found."""

    span: Span
    core: int | None
    mode: str | None
    episodes: tuple[Episode, ...]
    events: tuple[JoinedEvent, ...]
    is_strong: bool
    is_question: bool = False

    @property
    def has_victim(self) -> bool:
        """Whether something waited or was lost on the core while that was busier than usual."""
        active = [e for e in self.episodes if e.kind in ACTIVE and e.cpu == self.core]
        hurt = [e for e in self.episodes if e.kind in SUFFERING and e.cpu == self.core]
        return any(touches(victim.span, one.span) for victim in hurt for one in active)

    @property
    def subject(self) -> str | None:
        """What tasks waited for, where that is what it is about."""
        return next((e.subject for e in self.episodes if is_of_what_is_held(e)), None)

    @property
    def weight(self) -> float:
        return sum(episode.weight for episode in self.episodes) + 100.0 * len(self.events)


def gather(
    episodes: Sequence[Episode], found: Sequence[Happening], interrupts: ColumnArrays
) -> list[Cluster]:
    """Incidents in order of time; weak ones are candidates that need a cause with its confirming
    signal.
    """
    clusters = _all_clusters(episodes)
    events: list[list[JoinedEvent]] = [[] for _ in clusters]
    alone: list[JoinedEvent] = []
    for happening in found:
        takers = cores_of_device(interrupts, happening)
        event = join(happening, episodes, interrupts, takers)
        place = _home(event, clusters, takers)
        if place is not None:
            events[place].append(event)
        elif happening.is_major:
            alone.append(event)
    built = [_cluster(cluster, own) for cluster, own in zip(clusters, events, strict=True)]
    for scope in dict.fromkeys(event.happening.scope for event in alone):
        own = [event for event in alone if event.happening.scope == scope]
        built += [_cluster([], group) for group in _event_groups(own)]
    return sorted(built, key=lambda one: one.span)


def _all_clusters(episodes: Sequence[Episode]) -> list[list[Episode]]:
    """Strong ones, with the weak that belong to them; then the bursts of each program; then what is
    left.
    """
    reach = bridges(episodes)
    # A lock that tasks stand behind is an incident of its own, whatever runs on the cores; and what
    # the network loses is of no core.
    held = held_clusters(episodes)
    lost = [episode for episode in episodes if episode.kind is EpisodeKind.TRAFFIC_LOST]
    episodes = [
        episode
        for episode in episodes
        if episode.kind is not EpisodeKind.TRAFFIC_LOST and not is_of_what_is_held(episode)
    ]
    strong = _clusters([episode for episode in episodes if episode.is_strong], reach)
    left: list[Episode] = []
    for episode in episodes:
        if not episode.is_strong:
            home = next(
                (
                    own
                    for own in strong
                    if any(e.is_strong and _is_part(episode, e, reach) for e in own)
                ),
                None,
            )
            home.append(episode) if home is not None else left.append(episode)
    others = [episode for episode in left if episode.kind is not EpisodeKind.BURST]
    return [*strong, *_of_programs(left), *_clusters(others, reach), *held, *_clusters(lost, reach)]


def _is_part(weak: Episode, strong: Episode, reach: Bridges) -> bool:
    """User code on another core only happens to be at the same time; and a core full of softirqs
    next to one in system mode may be the one that receives what the other sends.
    """
    is_elsewhere = weak.cpu is not None and weak.cpu != strong.cpu
    is_of_its_own = weak.kind in (EpisodeKind.BURST, EpisodeKind.USER_BUSY)
    is_of_its_own |= weak.mode in ("softirq", "irq") and weak.mode != strong.mode
    return not (is_elsewhere and is_of_its_own) and _belongs(weak, strong, reach)


def _of_programs(weak: Sequence[Episode]) -> list[list[Episode]]:
    """However far apart, a program's bursts are one candidate, with what suffered on the core while
    they lasted.
    """
    bursts: dict[tuple[object, ...], list[Episode]] = {}
    for episode in weak:
        if episode.kind is EpisodeKind.BURST:
            bursts.setdefault((episode.cpu, episode.subject), []).append(episode)
    return [
        [*own, *(e for e in weak if e.kind in SUFFERING and _touches_any(e, own))]
        for own in bursts.values()
    ]


def _touches_any(episode: Episode, bursts: Sequence[Episode]) -> bool:
    return any(episode.cpu == burst.cpu and touches(episode.span, burst.span) for burst in bursts)


def _clusters(episodes: Sequence[Episode], reach: Bridges) -> list[list[Episode]]:
    """Episodes that belong together, also by way of a third."""
    clusters: list[list[Episode]] = []
    for episode in sorted(episodes, key=lambda one: one.from_ns):
        near = [
            cluster
            for cluster in clusters
            if any(_belongs(episode, other, reach) for other in cluster)
        ]
        for other in near[1:]:
            near[0].extend(other)
            clusters.remove(other)
        near[0].append(episode) if near else clusters.append([episode])
    return clusters


def _belongs(one: Episode, other: Episode, reach: Bridges) -> bool:
    """Bursts on one core every few seconds, or at a beat, are one incident; on other cores only
    what is at the same time.
    """
    if one.mode == other.mode == "steal":
        return touches(one.span, other.span, _STEAL_NS)
    if one.cpu == other.cpu or one.cpu is None or other.cpu is None:
        is_alike = (
            one.kind in ACTIVE
            and other.kind in ACTIVE
            and one.mode == other.mode
            and one.cpu is not None
        )
        return touches(one.span, other.span, reach.between(one, other) if is_alike else _TOUCH_NS)
    # Who waits for a core waits for what is on that one.
    is_queue = EpisodeKind.TASK_DELAYED in (one.kind, other.kind)
    return not is_queue and coincide(one.span, other.span)


def _home(
    event: JoinedEvent, clusters: Sequence[Sequence[Episode]], takers: Collection[int] | None
) -> int | None:
    """The cluster an event belongs to: one with its core before one without, a strong one before a
    weak one.
    """
    what = event.happening
    is_at_home = what.is_of_a_core or what.is_of_traffic
    if (what.is_of_the_device and event.core is None) or not is_at_home:
        return None
    span = Span(what.began_ns, event.time_ns + _TOUCH_NS)
    best: tuple[tuple[bool, bool, float], int] | None = None
    for place, cluster in enumerate(clusters):
        own = [
            episode
            for episode in cluster
            if touches(episode.span, span)
            and (episode.kind is EpisodeKind.TRAFFIC_LOST) == what.is_of_traffic
        ]
        if not own or not _may_hold(own, event.core, takers):
            continue
        # What tasks stand behind has its own reasons: a kill for memory only happened meanwhile.
        if not what.is_major and all(is_of_what_is_held(episode) for episode in own):
            continue
        rank = (
            any(e.cpu == event.core for e in own),
            any(e.is_strong for e in own),
            sum(e.weight for e in own),
        )
        best = max(best, (rank, place)) if best else (rank, place)
    return best[1] if best else None


def _may_hold(
    episodes: Sequence[Episode], core: int | None, takers: Collection[int] | None
) -> bool:
    """Whether they are of the event's core; if that is not known, of one that takes its device's
    interrupts, or of no core.
    """
    if core is not None:
        return any(episode.cpu in (core, None) for episode in episodes)
    telling = [episode for episode in episodes if episode.is_strong] or episodes
    cores = {episode.cpu for episode in telling if episode.cpu is not None}
    return takers is None or not cores or not cores.isdisjoint(takers)


def _event_groups(events: Sequence[JoinedEvent]) -> list[list[JoinedEvent]]:
    """Events without an episode that belong to the same trouble."""
    groups: list[list[JoinedEvent]] = []
    for event in sorted(events, key=lambda one: one.time_ns):
        last = groups[-1][-1] if groups else None
        is_near = last is not None and event.time_ns - last.time_ns <= _EVENTS_NS
        groups[-1].append(event) if is_near else groups.append([event])
    return groups


def _cluster(episodes: Sequence[Episode], events: Sequence[JoinedEvent]) -> Cluster:
    major = [event for event in events if event.happening.is_major]
    core = core_of(episodes, major)
    # What is weak may belong to it, but does not make it longer.
    telling = [episode for episode in episodes if episode.is_strong] or episodes
    spans = [episode.span for episode in telling] or [
        Span(event.happening.began_ns, event.time_ns) for event in events
    ]
    ends = [*(span[1] for span in spans), *(event.time_ns for event in major)]
    span = Span(min(start for start, _ in spans), max(ends))
    is_strong = bool(major) or any(episode.is_strong for episode in episodes)
    ordered = tuple(sorted(episodes, key=lambda one: (one.from_ns, one.kind)))
    return Cluster(
        span,
        core,
        mode_of(episodes, core),
        ordered,
        tuple(sorted(events, key=lambda e: e.time_ns)),
        is_strong,
    )


def core_of(episodes: Iterable[Episode], events: Iterable[JoinedEvent]) -> int | None:
    """An event's own word first, then the core where something suffered, then the one that was held
    longest.
    """
    for event in events:
        if event.core is not None:
            return event.core
    scores: dict[int, float] = {}
    known = [episode for episode in episodes if episode.cpu is not None]
    for episode in [episode for episode in known if episode.is_strong] or known:
        if episode.cpu is not None:
            factor = 3.0 if episode.kind in SUFFERING else 1.0
            scores[episode.cpu] = scores.get(episode.cpu, 0.0) + factor * episode.weight
    return max(scores, key=lambda cpu: (scores[cpu], -cpu)) if scores else None


def mode_of(episodes: Iterable[Episode], core: int | None) -> str | None:
    """The mode the core was held in longest, by strong episodes if there are any."""
    held = [
        episode
        for episode in episodes
        if episode.kind in ACTIVE and episode.mode and episode.cpu in (core, None)
    ]
    held = [episode for episode in held if episode.is_strong] or held
    return max(held, key=lambda episode: episode.weight).mode if held else None


def is_same(one: Cluster, other: Cluster) -> bool:
    """Whether two stretches of a recording that overlap show the same incident: they share an
    episode, an event, a program.
    """
    known = {(event.time_ns, event.kind) for event in one.events}
    if any((event.time_ns, event.kind) in known for event in other.events):
        return True
    return any(_are_parts(mine, theirs) for mine in one.episodes for theirs in other.episodes)


def _are_parts(mine: Episode, theirs: Episode) -> bool:
    return key_of(mine) == key_of(theirs) and (
        mine.kind is EpisodeKind.BURST or touches(mine.span, theirs.span, _TOUCH_NS)
    )


def unite(one: Cluster, later: Cluster) -> Cluster:
    """The same incident as two stretches of a recording tell it."""
    events = {
        (event.time_ns, event.kind, event.core): event for event in (*one.events, *later.events)
    }
    return replace(
        one,
        span=Span(min(one.span[0], later.span[0]), max(one.span[1], later.span[1])),
        episodes=tuple(merge_episodes([*one.episodes, *later.episodes], _TOUCH_NS)),
        events=tuple(sorted(events.values(), key=lambda event: event.time_ns)),
        is_strong=one.is_strong or later.is_strong,
    )


def around_moment(
    clusters: Sequence[Cluster], at_ns: int, around_ns: int, core: int | None
) -> list[Cluster]:
    """What a moment lies in, then what is near, on that core if one is given; strong before weak,
    then by distance.
    """
    near = [
        replace(one, is_question=True)
        for one in clusters
        if touches(one.span, Span(at_ns, at_ns), around_ns)
    ]
    own = (
        near
        if core is None
        else [found for one in near if (found := _on_core(one, core)) is not None]
    )
    return sorted(
        own,
        key=lambda one: (_distance_ns(one, at_ns) > 0, not one.is_strong, _distance_ns(one, at_ns)),
    )


def _on_core(one: Cluster, core: int) -> Cluster | None:
    """Of an incident of several cores what it was on one of them."""
    if one.core == core:
        return one
    is_part = any(episode.is_strong and episode.cpu == core for episode in one.episodes)
    return replace(one, core=core, mode=mode_of(one.episodes, core)) if is_part else None


def _distance_ns(one: Cluster, at_ns: int) -> int:
    """From a moment to what reported the incident; between the bursts of one that comes at a beat
    nothing went on.
    """
    spans = [
        episode.span for episode in one.episodes if episode.is_strong or not one.is_strong
    ] or [one.span]
    return min(max(from_ns - at_ns, at_ns - to_ns, 0) for from_ns, to_ns in spans)


def bridges(episodes: Iterable[Episode]) -> Bridges:
    starts: dict[Key, list[int]] = {}
    for episode in episodes:
        if episode.kind in ACTIVE and episode.kind is not EpisodeKind.BURST:
            starts.setdefault(_key(episode), []).append((episode.from_ns + episode.to_ns) // 2)
    periods = {key: period_of_starts(found) for key, found in starts.items()}
    return Bridges(
        {
            key: max(_BURSTS_NS, round(_PERIODS * p * NS_PER_S))
            for key, p in periods.items()
            if p is not None
        }
    )


def _key(episode: Episode) -> Key:
    return episode.cpu, episode.mode, episode.is_strong
