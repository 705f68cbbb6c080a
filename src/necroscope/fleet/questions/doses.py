"""How large the numbers of nodes were while they could have been hit, and when they were: what
`cohorts.dose` works on, out of the lake.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from necroscope.fleet.ask import LakeQuestions
from necroscope.fleet.cohorts.dose import TimeAtRisk
from necroscope.fleet.gauge_series import DAY_S, GaugeSeries, read_gauge_series
from necroscope.fleet.lake_tables import NodeKey
from necroscope.model.span import Span

Floats = NDArray[np.float64]
# A moment stands for this long, or for longer where there would be more than this many.
_SHORTEST_S: Final = 1800.0
_MOST_MOMENTS: Final = 50_000


def read_series(
    questions: LakeQuestions, keys: Sequence[NodeKey], span: Span
) -> GaugeSeries | None:
    return questions.again_if_merged(
        lambda: read_gauge_series(questions.lake, keys, span, questions.clusters)
    )


def read_time_at_risk(
    questions: LakeQuestions,
    hits: Mapping[NodeKey, Sequence[int]],
    span: Span,
    keys: Sequence[NodeKey],
) -> TimeAtRisk | None:
    """`hits` are the moments of each node that has any. None where no number is known of these
    nodes.
    """
    if not questions.lake.days("gauges"):
        return None
    series = read_series(questions, keys, span)
    return None if series is None else time_at_risk(series, hits, span)


def time_at_risk(
    series: GaugeSeries, hits: Mapping[NodeKey, Sequence[int]], span: Span
) -> TimeAtRisk:
    """A boot is at risk from the first that is known of it until its first hit. A boot that was hit
    before the span has nothing more to tell.
    """
    from_s, to_s = series.seconds([span.from_ns, span.to_ns]).tolist()
    hit_s = _first_hits(series, hits)
    until_s = np.minimum(series.last_s + DAY_S, to_s)
    # The next boot of the same node ends this one.
    is_followed = series.node_of_boot[1:] == series.node_of_boot[:-1]
    next_s = np.where(is_followed, series.booted_s[1:], np.inf)
    until_s[:-1] = np.fmin(until_s[:-1], next_s)
    until_s = np.fmin(until_s, hit_s)
    begin_s = np.maximum(series.first_s, from_s)
    boot, time_s, step_s = _moments(begin_s, np.maximum(until_s - begin_s, 0.0))
    is_hit = np.isfinite(hit_s) & (hit_s >= begin_s)
    hit_boot = np.flatnonzero(is_hit)
    sizes = [
        (series.at(name, boot, time_s), series.at(name, hit_boot, hit_s[hit_boot]))
        for name in series.names
    ]
    return TimeAtRisk(
        series.names,
        np.full(len(boot), step_s / DAY_S),
        np.array([at_risk for at_risk, _ in sizes]),
        np.array([at_hit for _, at_hit in sizes]),
    )


def _first_hits(series: GaugeSeries, hits: Mapping[NodeKey, Sequence[int]]) -> Floats:
    """Of each boot, infinity where there is none."""
    found = np.full(len(series.node_of_boot), np.inf)
    place = {key: number for number, key in enumerate(series.keys)}
    pairs = [
        (place[key], each) for key, moments in hits.items() if key in place for each in moments
    ]
    if pairs:
        node = np.array([number for number, _ in pairs], np.int64)
        time_s = series.seconds([each for _, each in pairs])
        boot = series.boot_at(node, time_s)
        np.minimum.at(found, boot[boot >= 0], time_s[boot >= 0])
    return found


def _moments(begin_s: Floats, length_s: Floats) -> tuple[NDArray[np.int64], Floats, float]:
    """Evenly over each boot's time, from a place by lot, so that no hour of the day is favoured:
    boot, moment, and how long each stands for.
    """
    step_s = max(_SHORTEST_S, float(length_s.sum()) / _MOST_MOMENTS)
    phase = np.random.default_rng(0).random(len(length_s))
    counts = np.floor(length_s / step_s + phase).astype(np.int64)
    boot = np.repeat(np.arange(len(length_s)), counts)
    within = np.arange(len(boot)) - np.repeat(np.cumsum(counts) - counts, counts)
    time_s = begin_s[boot] + (within + 1 - phase[boot]) * step_s
    return boot, time_s, step_s
