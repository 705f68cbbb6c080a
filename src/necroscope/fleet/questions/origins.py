"""What the verdicts of the nodes name as their origin, with the chain that leads to it."""

import json
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final

from necroscope.fleet.ask import LakeQuestions, View
from necroscope.fleet.cohorts.mechanism import Link, Origins
from necroscope.fleet.lake_tables import NodeKey
from necroscope.fleet.questions.newest_incidents import NEWEST_INCIDENTS
from necroscope.fleet.questions.occurrences import Subject
from necroscope.model.span import Span

# A verdict below this does not name its cause (analysis/report.py).
_NAMED: Final = 0.5
_COLUMNS: Final = (
    "id",
    "cause",
    "analysed_ns",
    "confidence",
    "events",
    "origin_kind",
    "origin_name",
    "origin_chain",
)
_QUERY: Final = f"""
SELECT DISTINCT cluster, node, origin_kind, origin_name, origin_chain FROM ({NEWEST_INCIDENTS})
WHERE confidence >= {_NAMED} AND cause <> 'unknown' AND origin_name IS NOT NULL
"""


def read_origins(
    questions: LakeQuestions, subject: Subject, span: Span, keys: Sequence[NodeKey]
) -> Origins:
    """Of the verdicts on what is asked about."""
    place = {key: number for number, key in enumerate(keys)}
    chains: dict[int, set[Link]] = defaultdict(set)
    if questions.lake.days("incidents"):
        about, name = _about(subject)
        rows = questions.rows(f"{_QUERY} AND {about}", {"incidents": View(span, _COLUMNS)}, [name])
        for cluster, node, kind, origin, chain in rows:
            if (cluster, node) in place:
                chains[place[cluster, node]] |= {(kind, origin), *_links(chain)}
    return Origins.of(len(keys), chains)


def _about(subject: Subject) -> tuple[str, str]:
    """Of jobs that died, every verdict may be the reason: which nodes count was decided before."""
    if subject.what == "job":
        return "id <> ?", ""
    if subject.what == "event":
        return "contains(events, ?)", json.dumps(subject.name)
    return "cause = ?", subject.name


def _links(chain: str | None) -> list[Link]:
    """What a node sends is checked to be JSON, not to be a chain."""
    try:
        links: Any = json.loads(chain or "[]")
        return [(str(kind), str(name)) for kind, name in links]
    except (ValueError, TypeError):
        return []
