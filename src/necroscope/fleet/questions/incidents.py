"""`fleet incidents`: what happened on all nodes, newest first, and which causes there are; one of
them with its whole report.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from necroscope.errors import UsageError
from necroscope.fleet.ask import LakeQuestions, View
from necroscope.fleet.lake_tables import NodeKey
from necroscope.fleet.questions.newest_incidents import NEWEST_INCIDENTS
from necroscope.fleet.questions.node_choice import choose
from necroscope.model.span import Span
from necroscope.model.units import format_moment

SCHEMA: Final = 1
_COLUMNS: Final = (
    "end", "id", "core", "mode", "cause", "confidence", "title", "summary",
    "culprit_comm", "culprit_cgroup", "culprit_unit", "culprit_container", "origin_kind",
    "origin_name", "events", "bundle", "analysed_by", "analysed_ns",
)  # fmt: skip
_MOST: Final = 10_000
_MOST_LISTED: Final = 20


@dataclass(frozen=True, slots=True)
class IncidentsAnswer:
    """`incidents` are the newest; `causes` count all of them."""

    span: Span
    where: str | None
    cause: str | None
    count: int
    causes: tuple[tuple[str, int, int], ...]
    incidents: tuple[dict[str, Any], ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            **self.span.as_json(),
            "where": self.where,
            "cause": self.cause,
            "count": self.count,
            "causes": [
                {"cause": cause, "incidents": times, "nodes": nodes}
                for cause, times, nodes in self.causes
            ],
            "incidents": list(self.incidents),
        }


def incidents(
    questions: LakeQuestions,
    span: Span,
    where: str | None = None,
    cause: str | None = None,
    limit: int = 100,
) -> IncidentsAnswer:
    tables = {} if where is None else {"chosen": _nodes(choose(questions, where, span))}
    source = f"({NEWEST_INCIDENTS}) AS newest" + (
        "" if where is None else " SEMI JOIN chosen USING (cluster, node)"
    )
    counting = f"""
        SELECT cause, count(*) AS times, count(DISTINCT (cluster, node))
        FROM {source} GROUP BY cause ORDER BY times DESC, cause
    """
    causes = questions.rows(
        counting, {"incidents": View(span, ("id", "cause", "analysed_ns"))}, (), tables
    )
    if cause is not None:
        there = sorted(name for name, *_ in causes)
        causes = [counted for counted in causes if counted[0] == cause]
        if there and not causes:
            raise UsageError(
                f"no incident has the cause {cause!r}",
                f"there are: {', '.join(there[:_MOST_LISTED])}",
            )
    names = ", ".join(f'"{name}"' for name in _COLUMNS)
    of_cause = "" if cause is None else "WHERE cause = ?"
    query = f"""
        SELECT cluster, node, time, {names} FROM {source} {of_cause}
        ORDER BY time DESC, cluster, node, id LIMIT ?
    """
    parameters = [*([] if cause is None else [cause]), min(limit, _MOST)]
    newest = questions.rows(query, {"incidents": View(span, _COLUMNS)}, parameters, tables)
    count = sum(times for _, times, _ in causes)
    return IncidentsAnswer(
        span, where, cause, count, tuple(causes[:_MOST]), tuple(map(_incident, newest))
    )


def incident_report(
    questions: LakeQuestions, cluster: str, node: str, incident: str
) -> dict[str, Any]:
    """The newest report of one incident, as `diagnose --json` gives it, with where its evidence
    is.
    """
    span = Span(0, questions.now_ns)
    query = (
        f"SELECT time, report, bundle, analysed_by FROM ({NEWEST_INCIDENTS}) WHERE cluster = ? AND"
        " node = ? AND id = ?"
    )
    columns = ("id", "cause", "report", "bundle", "analysed_by", "analysed_ns")
    rows = questions.rows(query, {"incidents": View(span, columns)}, [cluster, node, incident])
    if not rows:
        raise UsageError(
            f"there is no incident {incident!r} of {cluster}/{node}",
            "see: necroscope fleet incidents",
        )
    time_ns, report, bundle, analysed_by = rows[0]
    place = {"cluster": cluster, "node": node, "id": incident, "time": format_moment(time_ns)}
    return {**place, "bundle": bundle, "analysed_by": analysed_by, "report": json.loads(report)}


def _incident(row: tuple[Any, ...]) -> dict[str, Any]:
    found = dict(zip(("cluster", "node", "time", *_COLUMNS), row, strict=True))
    for name, value in (("from", "time"), ("to", "end"), ("analysed", "analysed_ns")):
        found[name] = format_moment(found.pop(value))
    found["events"] = json.loads(found["events"]) if found["events"] else []
    found["confidence"] = round(found["confidence"], 2)
    return found


def _nodes(chosen: Iterable[NodeKey]) -> pa.Table:
    names = list(chosen)
    columns = {"cluster": [cluster for cluster, _ in names], "node": [node for _, node in names]}
    return pa.table(columns, pa.schema([("cluster", pa.string()), ("node", pa.string())]))
