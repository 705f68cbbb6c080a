"""When: the stretches of an incident that count, those that are read closely, and the quiet time it
is compared with.
"""

from functools import cached_property
from typing import Final

from necroscope.analysis.clusters import Cluster
from necroscope.analysis.episodes import ACTIVE, Episode, EpisodeKind, outside
from necroscope.analysis.node import Node
from necroscope.analysis.periodicity import period_of_starts
from necroscope.model.span import Span, merge
from necroscope.model.units import NS_PER_S

# How far back the quiet time is looked for, and how much of the incident is read: what bounds
# memory.
BEFORE_NS: Final = 120 * NS_PER_S
_READ_NS: Final = 30 * NS_PER_S
# Weak candidates are many and mostly nothing: less of them is read.
_WEAK_BEFORE_NS: Final = 40 * NS_PER_S
_WEAK_READ_NS: Final = 12 * NS_PER_S
# Of an incident of many bursts those around the strongest are read: samples are read in one
# piece.
_NEAR_NS: Final = 300 * NS_PER_S
TICK_NS: Final = NS_PER_S
_MAIN_SHARE: Final = 0.4


class CaseTimes:
    """Of one incident; all cores count where it has none of its own."""

    def __init__(self, node: Node, cluster: Cluster) -> None:
        self._node = node
        self._cluster = cluster
        self.window: Span = cluster.span
        is_incident = cluster.is_strong or cluster.is_question
        self._before_ns = BEFORE_NS if is_incident else _WEAK_BEFORE_NS
        self._read_ns = _READ_NS if is_incident else _WEAK_READ_NS

    @property
    def seconds(self) -> float:
        """How long it lasted on its core, the time between its episodes left out."""
        return (
            sum(b - a for a, b in merge(episode.span for episode in self._longest) or [self.window])
            / NS_PER_S
        )

    @cached_property
    def spans(self) -> list[Span]:
        """What is read closely: the first part of each episode, the strongest first until there is
        enough, in order of time.
        """
        # What a later stretch of the recording has added is not among the rows that were read.
        wanted = sorted(
            (e for e in self._longest if e.from_ns < self._node.span[1]),
            key=lambda episode: -episode.weight,
        )
        found: list[Span] = []
        for episode in wanted:
            is_near = abs(episode.from_ns - wanted[0].from_ns) <= _NEAR_NS
            if is_near and sum(b - a for a, b in merge(found)) < self._read_ns:
                found.append(self._first_part(episode.span))
        return merge(found) or [self._first_part(self.window)]

    @cached_property
    def quiet(self) -> list[Span]:
        """Stretches of the core without any episode before what is read closely, else after it,
        else after the whole incident.
        """
        first_ns, last_ns = self._node.span
        # A core that computes in user mode all day is what the incident is compared with.
        usual = set() if self.main_mode == "user" else {EpisodeKind.USER_BUSY}
        busy = [
            e.span
            for e in self._node.episodes
            if e.cpu in (self._cluster.core, None) and e.kind not in usual
        ]
        own = [episode.span for episode in self._longest] or [self.window]
        holes = [Span(a - TICK_NS, b + TICK_NS) for a, b in merge([*busy, *own])]
        from_ns, to_ns, end_ns = self.spans[0][0], self.spans[-1][1], self.window[1]
        places = [(from_ns - self._before_ns, from_ns), (to_ns, to_ns + self._before_ns)]
        places += [(end_ns, end_ns + self._before_ns)] if end_ns - to_ns <= _NEAR_NS else []
        for start_ns, stop_ns in places:
            found = outside(Span(max(first_ns, start_ns), min(last_ns, stop_ns)), holes)
            long_enough = [span for span in found if span[1] - span[0] >= TICK_NS]
            if long_enough:
                return long_enough
        return []

    @cached_property
    def main_mode(self) -> str | None:
        """That of the episodes; where none has one, the mode the core was in most of the time."""
        if self._cluster.mode or self._cluster.core is None:
            return self._cluster.mode
        shares = {
            mode: self._node.mode_share(mode, self.spans, self._cluster.core) or 0.0
            for mode in ("system", "softirq", "irq", "steal", "user")
        }
        best = max(shares, key=lambda mode: shares[mode])
        return best if shares[best] >= _MAIN_SHARE else None

    def period_s(self, mode: str | None) -> float | None:
        """How often episodes in this mode come on this core, if they come regularly."""
        alike = [
            e
            for e in self._node.episodes
            if e.cpu == self._cluster.core and e.mode == mode and e.kind in ACTIVE
        ]
        return period_of_starts([(episode.from_ns + episode.to_ns) // 2 for episode in alike])

    @cached_property
    def _longest(self) -> list[Episode]:
        """The episodes that say how long it lasted: on its core before others, strong before weak,
        in its mode before others.
        """
        own = [e for e in self._cluster.episodes if e.cpu == self._cluster.core] or list(
            self._cluster.episodes
        )
        best = [e for e in own if e.is_strong] or own
        return [e for e in best if e.kind in ACTIVE and e.mode == self._cluster.mode] or best

    def _first_part(self, span: Span) -> Span:
        return Span(span[0], min(span[1], span[0] + self._read_ns))
