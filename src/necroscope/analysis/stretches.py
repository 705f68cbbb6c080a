"""A long recording is looked at an hour at a time, so that memory stays bounded; an incident may go
on from one to the next.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from necroscope.analysis.clusters import Cluster, is_same, unite
from necroscope.analysis.episodes import Episode, EpisodeKind
from necroscope.model.span import Span
from necroscope.model.units import NS_PER_S

STRETCH_NS: Final = 3600 * NS_PER_S
# Stretches overlap by what an incident may need around it.
_MARGIN_NS: Final = 180 * NS_PER_S


@dataclass(frozen=True, slots=True)
class OpenIncident:
    """An incident that is not over at the end of its stretch, with what is needed to judge it in
    the end.
    """

    stretch: Span
    episodes: Sequence[Episode]
    cluster: Cluster


def stretches(extent: Span) -> Iterator[tuple[Span, Span]]:
    """What is read together, and the part of it whose incidents it reports."""
    count = max(1, round((extent[1] - extent[0]) / STRETCH_NS))
    bounds = [extent[0] + (extent[1] - extent[0]) * place // count for place in range(count + 1)]
    for from_ns, to_ns in pairwise(bounds):
        yield (
            Span(max(extent[0], from_ns - _MARGIN_NS), min(extent[1], to_ns + _MARGIN_NS)),
            Span(from_ns, to_ns),
        )


def goes_on(cluster: Cluster, own: Span, extent: Span) -> bool:
    """Whether the next stretch may see more of it: it reaches into what both see, or it comes at a
    program's own beat.
    """
    if own[1] >= extent[1]:
        return False
    is_beat = (
        any(episode.kind is EpisodeKind.BURST for episode in cluster.episodes)
        and not cluster.is_strong
    )
    return cluster.span[1] > own[1] - _MARGIN_NS or (is_beat and cluster.span[1] > own[0])


def carry_on(
    still_open: Sequence[OpenIncident], found: Sequence[Cluster]
) -> tuple[list[OpenIncident], list[Cluster]]:
    """What was carried on, with all that this stretch adds to it; and what is new."""
    fresh: list[Cluster] = []
    longer = list(still_open)
    for one in found:
        place = next(
            (place for place, other in enumerate(longer) if is_same(other.cluster, one)), None
        )
        if place is None:
            fresh.append(one)
        else:
            longer[place] = replace(longer[place], cluster=unite(longer[place].cluster, one))
    return longer, fresh
