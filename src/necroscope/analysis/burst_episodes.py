"""Episodes of bursts at a steady beat: a core that is full for a second or some, has time again, and is full again on the dot.

One burst is nothing; only where several come at equal distances each of them is a weak episode.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np

from necroscope.analysis.columns import runs
from necroscope.analysis.core_episodes import CoreShares, core_shares, usual
from necroscope.analysis.episodes import Episode, Kind, Span
from necroscope.analysis.node import Node
from necroscope.analysis.periodicity import period_of_starts, told
from necroscope.model.units import NS_PER_S

_PEAK: Final = 0.7
_ABOVE_USUAL: Final = 0.4
_SHORTEST_S: Final = 0.9
_LONGEST_S: Final = 15.0
# Between two bursts the core must have had time for longer than what joins episodes into one.
_REST_S: Final = 2.1


def burst_episodes(node: Node) -> Iterator[Episode]:
    cores = core_shares(node)
    for cpu in np.unique(cores.rows["cpu"]).tolist() if len(cores.rows) else ():
        found = list(_bursts(cores, cpu))
        period_s = period_of_starts([span[0] for span, _, _ in found])
        if period_s is None:
            continue
        for span, level, mode in found:
            seconds = (span[1] - span[0]) / NS_PER_S
            text = f"core {cpu} was busy {level:.0%}, mostly {mode}, for about {seconds:.1f} s, {told(period_s)}"
            kind = Kind.USER_BUSY if mode == "user" else Kind.ELEVATED
            yield Episode(kind, cpu, mode, *span, level, text, "cores", is_strong=False)


def _bursts(cores: CoreShares, cpu: int) -> Iterator[tuple[Span, float, str]]:
    """Stretch, level and mode of each; the edges lie within a tick, by how busy that tick was."""
    own = np.flatnonzero(cores.rows["cpu"] == cpu)
    time, elapsed_ns = cores.rows["time"][own], cores.rows["elapsed_ns"][own]
    busy = np.minimum(cores.shares["user"][own] + cores.shares["kernel"][own], 1.0)
    common = usual(busy, time)
    last_ns = 0
    for first, end in runs(busy >= min(common + _ABOVE_USUAL, _PEAK), np.append(True, np.zeros(len(own) - 1, dtype=bool))):
        held_s = float((busy[first:end] * elapsed_ns[first:end]).sum()) / NS_PER_S
        span = int(time[first] - busy[first] * elapsed_ns[first]), int(time[end - 1])
        is_apart = span[0] - last_ns >= _REST_S * NS_PER_S
        last_ns = span[1]
        if busy[first:end].max() >= common + _ABOVE_USUAL and _SHORTEST_S <= held_s <= _LONGEST_S and is_apart:
            is_user = cores.shares["user"][own][first:end].sum() >= cores.shares["kernel"][own][first:end].sum()
            yield span, float(busy[first:end].max()), "user" if is_user else "system"
