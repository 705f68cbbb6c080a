"""How often an event or a cause happened over time, by any label: the picture that shows one zone
only.
"""

from collections import defaultdict
from dataclasses import dataclass
from typing import Any, Final

from necroscope.fleet.ask import LakeQuestions
from necroscope.fleet.lake_tables import NodeKey
from necroscope.fleet.questions.node_choice import NodeIndex
from necroscope.fleet.questions.occurrences import Subject, read_moments
from necroscope.fleet.where import parse
from necroscope.model.span import Span
from necroscope.model.units import NS_PER_S, format_moment

SCHEMA: Final = 1
_STEPS_S: Final = (60, 300, 900, 3600, 3 * 3600, 6 * 3600, 12 * 3600, 86400, 7 * 86400)
_MOST_BUCKETS: Final = 120
_MOST_SERIES: Final = 12
_OTHERS: Final = "(others)"


@dataclass(frozen=True, slots=True)
class Series:
    """Of one value of the label (None: nodes without it): times and nodes in each bucket, and how
    many nodes have it at all.
    """

    value: str | None
    times: tuple[int, ...]
    affected: tuple[int, ...]
    nodes: int

    def as_json(self) -> dict[str, Any]:
        return {
            "value": self.value,
            "times": list(self.times),
            "affected": list(self.affected),
            "nodes": self.nodes,
        }


@dataclass(frozen=True, slots=True)
class TimelineAnswer:
    about: Subject
    span: Span
    by: str
    bucket_ns: int
    starts_ns: tuple[int, ...]
    series: tuple[Series, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "about": self.about.as_json(),
            **self.span.as_json(),
            "by": self.by,
            "bucket_s": self.bucket_ns // NS_PER_S,
            "starts": [format_moment(start_ns) for start_ns in self.starts_ns],
            "series": [each.as_json() for each in self.series],
        }


def as_rows(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """The JSON of an answer as one flat row per bucket and value, as dashboards read it."""
    return [
        {"time": start, "value": each["value"], "times": times, "affected": affected}
        for each in answer["series"]
        for start, times, affected in zip(
            answer["starts"], each["times"], each["affected"], strict=True
        )
    ]


def timeline(
    questions: LakeQuestions, subject: Subject, by: str, span: Span, where: str | None = None
) -> TimelineAnswer:
    known = NodeIndex(questions, span)
    moments = read_moments(questions, subject, span)
    chosen = known.all() | moments.keys() if where is None else parse(where).choose(known)
    bucket_ns = _bucket_ns(span)
    first = span.from_ns // bucket_ns
    starts = tuple(bucket * bucket_ns for bucket in range(first, (span.to_ns - 1) // bucket_ns + 1))
    groups = _groups(known, by, chosen)
    order = sorted(
        groups,
        key=lambda value: (
            -sum(len(moments.get(node, ())) for node in groups[value]),
            value is None,
            value or "",
        ),
    )
    if len(order) > _MOST_SERIES:
        rest = [node for value in order[_MOST_SERIES - 1 :] for node in groups[value]]
        groups, order = {**groups, _OTHERS: rest}, [*order[: _MOST_SERIES - 1], _OTHERS]
    series = tuple(
        _series(value, groups[value], moments, first, len(starts), bucket_ns) for value in order
    )
    return TimelineAnswer(subject, span, by, bucket_ns, starts, series)


def _groups(
    known: NodeIndex, by: str, chosen: frozenset[NodeKey]
) -> dict[str | None, list[NodeKey]]:
    values = known.values(by)
    groups: dict[str | None, list[NodeKey]] = defaultdict(list)
    for node in sorted(chosen):
        groups[values.get(node)].append(node)
    return groups


def _series(
    value: str | None,
    nodes: list[NodeKey],
    moments: dict[NodeKey, list[int]],
    first: int,
    count: int,
    bucket_ns: int,
) -> Series:
    times, affected = [0] * count, [0] * count
    for node in nodes:
        buckets = [moment // bucket_ns - first for moment in moments.get(node, ())]
        for bucket in buckets:
            times[bucket] += 1
        for bucket in set(buckets):
            affected[bucket] += 1
    return Series(value, tuple(times), tuple(affected), len(nodes))


def _bucket_ns(span: Span) -> int:
    seconds = (span.to_ns - span.from_ns) / NS_PER_S
    return (
        next(
            (step for step in _STEPS_S if seconds / step <= _MOST_BUCKETS),
            max(_STEPS_S[-1], int(seconds / _MOST_BUCKETS)),
        )
        * NS_PER_S
    )
