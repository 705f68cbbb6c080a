"""What only the fleet's page asks: which events, causes, clusters and labels it can offer, and the
core of each node that was held most.
"""

from collections import defaultdict
from dataclasses import dataclass
from typing import Any, Final

from necroscope.fleet.ask import LakeQuestions, View, cheap_span
from necroscope.fleet.lake_tables import DAY_NS
from necroscope.fleet.questions.node_choice import NodeIndex
from necroscope.fleet.questions.occurrences import read_nodes_by_name
from necroscope.model.span import Span
from necroscope.model.units import format_moment

SCHEMA: Final = 1
_MOST: Final = 200


@dataclass(frozen=True, slots=True)
class ChoicesAnswer:
    """Each by its name; events and causes with their nodes, labels with their values."""

    span: Span
    clusters: tuple[str, ...]
    events: dict[str, int]
    causes: dict[str, int]
    labels: dict[str, int]

    def as_json(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            **self.span.as_json(),
            "clusters": list(self.clusters),
            "events": [
                {"name": name, "nodes": nodes} for name, nodes in list(self.events.items())[:_MOST]
            ],
            "causes": [
                {"name": name, "nodes": nodes} for name, nodes in list(self.causes.items())[:_MOST]
            ],
            "labels": [
                {"name": name, "values": values}
                for name, values in list(self.labels.items())[:_MOST]
            ],
        }


def choices(questions: LakeQuestions, span: Span) -> ChoicesAnswer:
    events, causes = (
        {name: len(nodes) for name, nodes in read_nodes_by_name(questions, what, span).items()}
        for what in ("event", "cause")
    )
    known = NodeIndex(questions, span)
    values: dict[str, set[str]] = defaultdict(set)
    for labels in known.labels().values():
        for name, value in labels.items():
            values[name].add(value)
    clusters = tuple(sorted({cluster for cluster, _ in known.all()}))
    return ChoicesAnswer(
        span, clusters, events, causes, {name: len(values[name]) for name in sorted(values)}
    )


_MOST_ROWS: Final = 3_000_000
# User time alone is what such nodes do all day; what a core is taken for by the kernel or the host
# starves it.
_MODES: Final = ("system", "softirq", "steal")
_QUERY: Final = """
WITH each AS (
    SELECT cluster, node, time, cpu, unnest(['system', 'softirq', 'steal']) AS mode,
           unnest([worst_system, worst_softirq, worst_steal]) AS share
    FROM core_minutes
)
SELECT cluster, node, arg_max({'cpu': cpu, 'mode': mode, 'time': time}, share) AS worst, max(share)
FROM each WHERE share IS NOT NULL GROUP BY ALL ORDER BY ALL
"""


@dataclass(frozen=True, slots=True)
class WorstCoresAnswer:
    """`span` is what was looked at: the end of the time, and less of it where there is much."""

    span: Span
    cores: tuple[dict[str, Any], ...]

    def as_json(self) -> dict[str, Any]:
        return {"schema": SCHEMA, **self.span.as_json(), "cores": list(self.cores)}


def worst_cores(questions: LakeQuestions, span: Span) -> WorstCoresAnswer:
    last_day = Span(max(span.from_ns, span.to_ns - DAY_NS), span.to_ns)
    looked = cheap_span(questions, "core_minutes", last_day, _MOST_ROWS)
    columns = ("cpu", *(f"worst_{mode}" for mode in _MODES))
    rows = questions.rows(_QUERY, {"core_minutes": View(looked, columns)})
    return WorstCoresAnswer(looked, tuple(_core(*row) for row in rows))


def _core(cluster: str, node: str, worst: dict[str, Any], share: float) -> dict[str, Any]:
    place = {"cluster": cluster, "node": node, "core": worst["cpu"], "mode": worst["mode"]}
    return {**place, "share": round(share, 3), "at": format_moment(worst["time"])}
