"""The verdict on a pinned window, in a short-lived process of its own: what it imports and
allocates ends with it.

`python -m necroscope.outlets.push.window_analysis RECORDING FROM_NS TO_NS SINCE_NS final|early
DIRECTORY` writes `verdicts.json` and, if the window is final and had an incident, `bundle`.
"""

import contextlib
import json
import os
import resource
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from necroscope import __version__
from necroscope.analysis.detect import detect
from necroscope.analysis.engine import diagnose
from necroscope.analysis.node import Node
from necroscope.analysis.report import Culprit, Incident, Origin
from necroscope.errors import NecroscopeError
from necroscope.fleet.bundle import make_bundle
from necroscope.fleet.lake_tables import JSON_LIMIT
from necroscope.model.span import Span
from necroscope.segment.checksum import sync_directory, write_checked
from necroscope.segment.recording import segment_name
from necroscope.store.query import Store

VERDICTS_FILE: Final = "verdicts.json"
BUNDLE_FILE: Final = "bundle"
_NICE: Final = 19
_DATA_LIMIT_BYTES: Final = 1 << 30
_MOST_INCIDENTS: Final = 100
_MOST_EPISODES: Final = 1000
# Of all reports together: a collector takes 8 MiB of JSON at once, and in JSON their quotes are two
# characters each.
_REPORTS_CHARACTERS: Final = 3_000_000


Columns = dict[str, list[Any]]


@dataclass(frozen=True, slots=True)
class Verdicts:
    """Rows of the lake's `incidents` and `episodes`, and the bundle with its name."""

    incidents: list[dict[str, Any]]
    episodes: list[dict[str, Any]]
    bundle_name: str | None = None
    bundle: bytes | None = None


def analyse(
    store: Store, window: Span, since_ns: int, *, is_final: bool, now_ns: int, work: Path
) -> Verdicts:
    """Incidents that went on after `since_ns`; what was over before was told before. Episodes and
    evidence once, at the end.
    """
    report = diagnose(store, span=window)
    wrong = [incident for incident in report.wrong if incident.to_ns > since_ns][:_MOST_INCIDENTS]
    name, bundle = None, None
    if is_final and wrong:
        cores = frozenset(incident.core for incident in wrong if incident.core is not None)
        bundle = make_bundle(
            store,
            window,
            [Span(incident.from_ns, incident.to_ns) for incident in wrong],
            cores,
            work,
        )
        name = segment_name(window[0]) if bundle is not None else None
    episodes = _episodes(store, window, since_ns) if is_final else []
    most = min(JSON_LIMIT, _REPORTS_CHARACTERS // max(1, len(wrong)))
    return Verdicts(
        [_incident(incident, name, now_ns, most) for incident in wrong], episodes, name, bundle
    )


def _episodes(store: Store, window: Span, since_ns: int) -> list[dict[str, Any]]:
    strong = [one for one in detect(Node(store, window)) if one.is_strong and one.to_ns > since_ns]
    heaviest = sorted(strong, key=lambda one: -one.weight)[:_MOST_EPISODES]
    return [
        {
            "time": one.from_ns,
            "end": one.to_ns,
            "kind": one.kind.value,
            "cpu": one.cpu,
            "mode": one.mode,
            "text": one.text,
        }
        for one in sorted(heaviest, key=lambda one: one.from_ns)
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
        "culprit_cgroup": culprit.cgroup,
        "culprit_unit": culprit.unit,
        "culprit_container": culprit.container,
        "origin_kind": origin.kind or None,
        "origin_name": origin.name or None,
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


def _step_back() -> None:
    """Behind everybody else, on one core, with bounded memory."""
    os.setpriority(os.PRIO_PROCESS, 0, _NICE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_DATA, (_DATA_LIMIT_BYTES, _DATA_LIMIT_BYTES))
    pa.set_memory_pool(pa.system_memory_pool())
    pa.set_cpu_count(1)


def main(arguments: Sequence[str]) -> int:
    recording, from_ns, to_ns, since_ns, kind, directory = arguments
    _step_back()
    work = Path(directory)
    try:
        window = Span(int(from_ns), int(to_ns))
        store = Store.open(Path(recording))
        found = analyse(
            store, window, int(since_ns), is_final=kind == "final", now_ns=time.time_ns(), work=work
        )
    except (NecroscopeError, MemoryError) as error:
        print(str(error) or "out of memory", file=sys.stderr)  # noqa: T201 - the last line is told as the cause of the gap
        return 1
    if found.bundle is not None:
        (work / BUNDLE_FILE).write_bytes(found.bundle)
        sync_directory(work)
    content = {
        "incidents": found.incidents,
        "episodes": found.episodes,
        "bundle": found.bundle_name,
    }
    write_checked(work / VERDICTS_FILE, content)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
