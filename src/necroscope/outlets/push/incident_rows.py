"""Incidents as rows of the lake's tables `incidents` and `episodes`."""

import json
from collections.abc import Sequence
from typing import Any, Final

from necroscope import __version__
from necroscope.analysis.report import Culprit, Incident, Origin
from necroscope.fleet.lake_tables import JSON_LIMIT

MOST_INCIDENTS: Final = 100
_MOST_EPISODES: Final = 1000
# Of all reports together: a collector takes 8 MiB of JSON at once, and in JSON their quotes are two
# characters each.
_REPORTS_CHARACTERS: Final = 3_000_000

Row = dict[str, Any]


def incident_rows(incidents: Sequence[Incident], bundle: str | None, now_ns: int) -> list[Row]:
    """`bundle` is the name of the evidence they are in; `now_ns` becomes `analysed_ns`."""
    most = min(JSON_LIMIT, _REPORTS_CHARACTERS // max(1, len(incidents)))
    return [_incident(incident, bundle, now_ns, most) for incident in incidents]


def episode_rows(incidents: Sequence[Incident]) -> list[Row]:
    """Of all of them, once each, in order of time."""
    seen = {episode for incident in incidents for episode in incident.episodes}
    ordered = sorted(seen, key=lambda one: (one.from_ns, one.to_ns, one.kind, one.core or -1))
    return [
        {
            "time": one.from_ns,
            "end": one.to_ns,
            "kind": one.kind,
            "cpu": one.core,
            "mode": one.mode,
            "text": one.text,
        }
        for one in ordered[:_MOST_EPISODES]
    ]


def _incident(incident: Incident, bundle: str | None, now_ns: int, most: int) -> dict[str, Any]:
    verdict = incident.verdict
    culprit, origin = verdict.culprit or Culprit(), verdict.origin or Origin("", "")
    return {
        "time": incident.from_ns,
        "end": incident.to_ns,
        "id": incident.id,
        "core": incident.core,
        "mode": incident.mode,
        "cause": verdict.cause,
        "confidence": round(verdict.confidence, 3),
        "title": verdict.title,
        "summary": verdict.summary,
        "culprit_comm": culprit.comm,
        "culprit_pid": culprit.pid,
        "culprit_cgroup": culprit.cgroup,
        "culprit_unit": culprit.unit,
        "culprit_container": culprit.container,
        "origin_kind": origin.kind or None,
        "origin_name": origin.name or None,
        "origin_chain": json.dumps(origin.chain) if origin.chain else None,
        "events": json.dumps(sorted({event.kind for event in incident.events})),
        "report": _report(incident, most),
        "bundle": bundle,
        "analysed_by": __version__,
        "analysed_ns": now_ns,
    }


def _report(incident: Incident, most: int) -> str:
    """Long lists are cut rather than the verdict."""
    content = incident.as_json()
    for items in (200, 50, 10, 0):
        text = json.dumps(content)
        if len(text) <= most:
            return text
        content["events"], content["episodes"] = (
            content["events"][:items],
            content["episodes"][:items],
        )
    return json.dumps({"id": incident.id, "left_out": "the report is too long"})
