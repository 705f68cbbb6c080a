"""All episodes of a stretch, found in the cheap tables; of samples only time, core and name are
looked at.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np

from necroscope.analysis.burst_episodes import burst_episodes
from necroscope.analysis.core_episodes import core_episodes
from necroscope.analysis.core_time import MODES
from necroscope.analysis.episodes import Episode, merge_episodes
from necroscope.analysis.machine_episodes import machine_episodes
from necroscope.analysis.node import Node
from necroscope.analysis.softirq_episodes import softirq_episodes
from necroscope.analysis.traffic_episodes import traffic_episodes
from necroscope.analysis.wait_episodes import wait_episodes
from necroscope.model.span import Span
from necroscope.model.units import NS_PER_S

# Ticks of a second cut a stretch where it dips for a moment; bursts at a beat of a few seconds stay
# apart.
_BRIDGE_NS: Final = 6 * NS_PER_S // 5
# A busy node has many weak ones; joining them costs the square of their number.
_MOST_WEAK: Final = 400
_LEAST_SHARE: Final = 0.2


def detect(node: Node) -> list[Episode]:
    """In order of time."""
    found = merge_episodes(_all(node), _BRIDGE_NS)
    weak = sorted(
        (episode for episode in found if not episode.is_strong), key=lambda one: -one.weight
    )
    kept = set(map(id, weak[:_MOST_WEAK]))
    return [episode for episode in found if episode.is_strong or id(episode) in kept]


def busiest_core(node: Node, span: Span, core: int | None = None) -> tuple[int | None, str | None]:
    """The core that worked most in a stretch, or the given one, and in which mode: where to look
    when asked about a moment.
    """
    rows = node.columns("cores").within([span]).of_core(core)
    best: tuple[float, int, str] | None = None
    for cpu in np.unique(rows["cpu"]):
        own = rows.of_core(int(cpu))
        elapsed_ns = own.total("elapsed_ns") or 1.0
        for mode in ("system", "softirq", "irq", "steal", "user"):
            # A core busy in user mode is what most nodes have; one busy in the kernel says more.
            share = (own.total(*MODES[mode]) or 0.0) / elapsed_ns * (0.5 if mode == "user" else 1.0)
            best = max(best, (share, int(cpu), mode)) if best else (share, int(cpu), mode)
    return (best[1], best[2]) if best and best[0] >= _LEAST_SHARE else (core, None)


def _all(node: Node) -> Iterator[Episode]:
    yield from core_episodes(node)
    yield from softirq_episodes(node)
    yield from machine_episodes(node)
    yield from burst_episodes(node)
    yield from wait_episodes(node)
    yield from traffic_episodes(node)
