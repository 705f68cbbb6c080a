"""The node's events as markers of a Firefox profile, and the schema by which the viewer shows
them.
"""

from typing import Any, Final

import pyarrow as pa

from necroscope.interchange.writers.firefox_tables import EVENT_CATEGORY
from necroscope.interchange.writers.window import Strings, WindowFacts
from necroscope.model.units import NS_PER_MS

Json = dict[str, Any]
_TYPE: Final = "NodeEvent"
_INSTANT: Final = 0
_FIELDS: Final = {
    "kind": "string",
    "message": "string",
    "cpu": "integer",
    "device": "string",
    "queue": "integer",
    "pid": "integer",
    "comm": "string",
    "severity": "integer",
    "pattern": "string",
}
MARKER_SCHEMA: Final = {
    "name": _TYPE,
    "tooltipLabel": "{marker.data.kind}",
    "tableLabel": "{marker.data.message}",
    "chartLabel": "{marker.data.kind}",
    "display": ["marker-chart", "marker-table", "timeline-overview"],
    "fields": [{"key": key, "label": key, "format": form} for key, form in _FIELDS.items()],
}


def no_markers() -> Json:
    return {
        "data": [],
        "name": [],
        "startTime": [],
        "endTime": [],
        "phase": [],
        "category": [],
        "length": 0,
    }


def event_markers(events: pa.Table, facts: WindowFacts, strings: Strings) -> Json:
    """One marker for each row of the table `events`."""
    markers = no_markers()
    rows = sorted(events.to_pylist(), key=lambda row: row["time"])
    for row in rows:
        markers["data"].append(
            {"type": _TYPE} | {key: row[key] for key in _FIELDS if row.get(key) is not None}
        )
        markers["name"].append(strings(row["kind"]))
        markers["startTime"].append((row["time"] - facts.from_ns) / NS_PER_MS)
        markers["endTime"].append(None)
        markers["phase"].append(_INSTANT)
        markers["category"].append(EVENT_CATEGORY)
    return markers | {"length": len(rows)}
