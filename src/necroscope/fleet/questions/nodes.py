"""`fleet nodes`: who is there, since when nothing was heard of whom, and what happened on each."""

from collections import Counter
from dataclasses import dataclass
from typing import Any, Final

from necroscope.fleet.ask import LakeQuestions, View
from necroscope.fleet.lake_tables import DAY_NS, NodeKey
from necroscope.fleet.questions.newest_incidents import NEWEST_INCIDENTS
from necroscope.fleet.questions.node_choice import NodeIndex
from necroscope.fleet.where import parse
from necroscope.model.span import Span
from necroscope.model.units import NS_PER_S, format_moment

SCHEMA: Final = 1
# Batches come every minute or so.
_SILENT_NS: Final = 600 * NS_PER_S
_CLOCK_OFF_NS: Final = NS_PER_S
# Pulses carry the node's own time. Those of a clock that is off lie outside the time asked about,
# and are looked for so far.
_FURTHEST_OFF_NS: Final = 3 * DAY_NS
_EVENTS: Final = "SELECT cluster, node, kind, count(*) FROM events GROUP BY ALL ORDER BY ALL"
_INCIDENTS: Final = (
    f"SELECT cluster, node, count(*), arg_max(cause, time) FROM ({NEWEST_INCIDENTS}) GROUP BY ALL"
)
_PULSES: Final = """
SELECT cluster, node, max(heard), arg_max(recorder_version, heard), arg_max(cpus, heard),
    arg_max(clock_offset_ns, heard)
FROM (SELECT *, time + coalesce(clock_offset_ns, 0) AS heard FROM pulses WHERE {})
WHERE heard >= ? AND heard < ? GROUP BY ALL
"""


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """`last_ns` is by the collector's clock, None for a node that was not heard of on the last day.

    `clock_offset_ns` is the collector's clock minus the node's.
    """

    key: NodeKey
    labels: dict[str, str]
    last_ns: int | None
    is_silent: bool
    recorder_version: str | None
    cpus: int | None
    clock_offset_ns: int | None
    events: dict[str, int]
    incidents: int
    last_cause: str | None

    @property
    def is_clock_off(self) -> bool:
        return self.clock_offset_ns is not None and abs(self.clock_offset_ns) > _CLOCK_OFF_NS

    def as_json(self) -> dict[str, Any]:
        return {
            "cluster": self.key[0],
            "node": self.key[1],
            "labels": self.labels,
            "last_seen": None if self.last_ns is None else format_moment(self.last_ns),
            "is_silent": self.is_silent,
            "recorder_version": self.recorder_version,
            "cpus": self.cpus,
            "clock_offset_ns": self.clock_offset_ns,
            "is_clock_off": self.is_clock_off,
            "events": self.events,
            "incidents": self.incidents,
            "last_cause": self.last_cause,
        }


@dataclass(frozen=True, slots=True)
class NodesAnswer:
    span: Span
    where: str | None
    nodes: tuple[NodeStatus, ...]

    def as_json(self) -> dict[str, Any]:
        kinds: Counter[str] = Counter()
        for node in self.nodes:
            kinds.update(node.events)
        return {
            "schema": SCHEMA,
            **self.span.as_json(),
            "where": self.where,
            "count": len(self.nodes),
            "silent": sum(node.is_silent for node in self.nodes),
            "clocks_off": sum(node.is_clock_off for node in self.nodes),
            "events": dict(kinds.most_common()),
            "labels": sorted({name for node in self.nodes for name in node.labels}),
            "nodes": [node.as_json() for node in self.nodes],
        }


def nodes(questions: LakeQuestions, span: Span, where: str | None = None) -> NodesAnswer:
    """Those with most events first, then by name."""
    pulses = _last_pulses(questions, span)
    known = NodeIndex(
        questions,
        span,
        {key: pulse[3] for key, pulse in pulses.items() if abs(pulse[3] or 0) >= _SILENT_NS},
    )
    chosen = known.all() if where is None else parse(where).choose(known)
    labels = known.labels()
    events: dict[NodeKey, dict[str, int]] = {}
    for cluster, node, kind, count in questions.rows(
        _EVENTS, {"events": View(span, ("boot_id", "source_sequence", "kind"))}
    ):
        events.setdefault((cluster, node), {})[kind] = count
    incidents = {
        row[:2]: row[2:]
        for row in questions.rows(
            _INCIDENTS, {"incidents": View(span, ("id", "cause", "analysed_ns"))}
        )
    }
    found = [
        _status_of(
            key,
            labels[key],
            pulses.get(key),
            events.get(key, {}),
            incidents.get(key, (0, None)),
            span,
        )
        for key in sorted(chosen)
    ]
    return NodesAnswer(
        span, where, tuple(sorted(found, key=lambda each: -sum(each.events.values())))
    )


def _last_pulses(questions: LakeQuestions, span: Span) -> dict[NodeKey, tuple[Any, ...]]:
    """Of the last day by the collector's clock, as there is a pulse per minute and node: when,
    version, cores, clock's offset.
    """
    last = Span(max(span.from_ns, span.to_ns - DAY_NS), span.to_ns)
    before = Span(max(last.from_ns - _FURTHEST_OFF_NS, 0), last.from_ns)
    after = Span(last.to_ns, last.to_ns + _FURTHEST_OFF_NS)
    is_behind, is_ahead = f"clock_offset_ns >= {_SILENT_NS}", f"clock_offset_ns <= -{_SILENT_NS}"
    columns = ("recorder_version", "cpus", "clock_offset_ns")
    found: dict[NodeKey, tuple[Any, ...]] = {}
    # Of the other days Parquet's own statistics say that there is nothing to read, but for clocks
    # that are off.
    for looked, condition in ((last, "true"), (before, is_behind), (after, is_ahead)):
        for cluster, node, *pulse in questions.rows(
            _PULSES.format(condition), {"pulses": View(looked, columns)}, last
        ):
            if pulse[0] > found.get((cluster, node), (0,))[0]:
                found[cluster, node] = tuple(pulse)
    return found


def _status_of(
    key: NodeKey,
    labels: dict[str, str],
    pulse: tuple[Any, ...] | None,
    events: dict[str, int],
    incidents: tuple[Any, ...],
    span: Span,
) -> NodeStatus:
    last_ns, version, cpus, offset_ns = pulse or (None, None, None, None)
    is_silent = last_ns is None or span.to_ns - last_ns > _SILENT_NS
    return NodeStatus(
        key,
        labels,
        last_ns,
        is_silent,
        version,
        cpus,
        offset_ns,
        events,
        incidents[0],
        incidents[1],
    )
