"""What there is to ask about in a time: events and causes with how many nodes had them, clusters,
labels and their values.
"""

from collections import defaultdict
from dataclasses import dataclass
from typing import Any, Final

from necroscope.fleet.ask import LakeQuestions
from necroscope.fleet.questions.happened import read_nodes_by_name
from necroscope.fleet.questions.node_choice import KnownNodes
from necroscope.fleet.span import Span

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
    known = KnownNodes(questions, span)
    values: dict[str, set[str]] = defaultdict(set)
    for labels in known.labels().values():
        for name, value in labels.items():
            values[name].add(value)
    clusters = tuple(sorted({cluster for cluster, _ in known.all()}))
    return ChoicesAnswer(
        span, clusters, events, causes, {name: len(values[name]) for name in sorted(values)}
    )
