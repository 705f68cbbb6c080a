"""How far apart episodes of one core and mode may lie and still be one incident: some seconds, or a
bit over their own beat.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from necroscope.analysis.episodes import ACTIVE, Episode, Kind
from necroscope.analysis.periodicity import period_of_starts
from necroscope.model.units import NS_PER_S

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
        if one.kind is Kind.BURST and other.kind is Kind.BURST and one.subject != other.subject:
            return 0
        if one.is_strong != other.is_strong:
            return _BURSTS_NS
        return self.at_a_beat_ns.get(_key(one), _BURSTS_NS)


def bridges(episodes: Iterable[Episode]) -> Bridges:
    starts: dict[Key, list[int]] = {}
    for episode in episodes:
        if episode.kind in ACTIVE and episode.kind is not Kind.BURST:
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
