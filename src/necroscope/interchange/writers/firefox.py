"""Firefox Profiler's processed profile, format version 61, for https://profiler.firefox.com and its
command line.

Types: https://github.com/firefox-devtools/profiler/blob/main/src/types/profile.ts; changes between
versions: docs-developer/CHANGELOG-formats.md there. Version 61 is the first with all tables shared
by the threads that the viewer upgrades without a guess; it refuses versions newer than itself,
never older ones. Times are milliseconds since the window's start.

The tracks: the node's events as markers; each core as a thread of the process `cores`; each thread
under its own process. So a sample is in the file twice, once under its core and once under its
thread; `by` asks for one of them.
"""

import json
from collections.abc import Iterator
from typing import Any, BinaryIO, Final, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from necroscope import __version__
from necroscope.interchange.writers.firefox_tables import (
    CATEGORIES,
    EVENT_CATEGORY,
    libraries,
    shared_tables,
)
from necroscope.interchange.writers.window import (
    UNKNOWN,
    SampleColumns,
    Strings,
    WindowFacts,
    columns_of,
)
from necroscope.model.units import NS_PER_MS
from necroscope.stacks.samples import SampleTables

_PROCESSED_VERSION: Final = 61
_GECKO_VERSION: Final = 31
_CORES_PROCESS: Final = "cores"
Json = dict[str, Any]


def write_firefox(
    tables: SampleTables,
    facts: WindowFacts,
    out: BinaryIO,
    *,
    events: pa.Table | None = None,
    by: Literal["core", "thread", "both"] = "both",
) -> None:
    """`events` are rows of the table of that name."""
    columns = columns_of(tables)
    strings = Strings()
    tree, new = columns.tree.pruned(columns.stack)
    shared, stacks = shared_tables(columns, tree, strings), new[columns.stack]
    threads = [_events_thread(facts, events, strings)]
    if by != "thread":
        threads += _core_threads(columns, stacks, facts)
    if by != "core":
        threads += _task_threads(columns, stacks, facts)
    profile = {
        "meta": _meta(columns, facts),
        "libs": libraries(columns),
        "shared": shared | {"stringArray": list(strings)},
        "threads": threads,
        "pages": [],
        "counters": [],
    }
    out.write(json.dumps(profile, separators=(",", ":")).encode())


def _meta(columns: SampleColumns, facts: WindowFacts) -> Json:
    cores = int((np.unique(columns.cpu) != UNKNOWN).sum())
    entries = [{"label": "Left out", "format": "string", "value": text} for text in facts.left_out]
    return {
        "version": _GECKO_VERSION,
        "preprocessedProfileVersion": _PROCESSED_VERSION,
        "product": "necroscope",
        "importedFrom": f"necroscope {__version__}",
        "arguments": facts.title,
        "interval": columns.period_ns(facts) / NS_PER_MS,
        "startTime": facts.from_ns / NS_PER_MS,
        "profilingStartTime": 0,
        "profilingEndTime": (facts.to_ns - facts.from_ns) / NS_PER_MS,
        "sampleUnits": {"time": "ms", "eventDelay": "ms", "threadCPUDelta": "ns"},
        "processType": 0,
        "stackwalk": 1,
        "debug": False,
        "platform": "Linux",
        "oscpu": "Linux",
        **({"logicalCPUs": cores} if cores else {}),
        "categories": CATEGORIES,
        "markerSchema": [MARKER_SCHEMA],
        "symbolicated": True,
        "symbolicationNotSupported": True,
        "usesOnlyOneStackType": True,
        "sourceCodeIsNotOnSearchfox": True,
        "keepProfileThreadOrder": True,
        "extra": [{"label": "Recording", "entries": entries}] if entries else [],
    }


def _events_thread(facts: WindowFacts, events: pa.Table | None, strings: Strings) -> Json:
    empty: Json = {"stack": [], "time": [], "weight": None, "weightType": "samples", "length": 0}
    markers = no_markers() if events is None else event_markers(events, facts, strings)
    thread = _thread("events", "node", "node", "events", empty, is_main=True)
    return thread | {"markers": markers, "showMarkersInTimeline": True}


def _core_threads(
    columns: SampleColumns, stacks: NDArray[np.int64], facts: WindowFacts
) -> Iterator[Json]:
    for cpu in np.unique(columns.cpu).tolist():
        name = "core unknown" if cpu == UNKNOWN else f"core {cpu}"
        samples = _sample_table(columns, stacks, np.flatnonzero(columns.cpu == cpu), facts)
        yield _thread(name, _CORES_PROCESS, _CORES_PROCESS, name, samples, is_main=False)


def _task_threads(
    columns: SampleColumns, stacks: NDArray[np.int64], facts: WindowFacts
) -> Iterator[Json]:
    order = np.lexsort((columns.time_ns, columns.tid, columns.pid))
    is_first = np.flatnonzero(
        np.diff(columns.tid[order], prepend=-2) | np.diff(columns.pid[order], prepend=-2)
    )
    process_names = columns.process_names()
    for rows in np.split(order, is_first[1:]) if len(order) else []:
        pid, tid, comm = (
            int(column[rows[-1]]) for column in (columns.pid, columns.tid, columns.comm)
        )
        name = columns.comms[comm] if comm != UNKNOWN else f"thread {tid}"
        samples = _sample_table(columns, stacks, rows, facts)
        yield _thread(
            name, process_names.get(pid, name), str(pid), tid, samples, is_main=pid == tid
        )


def _sample_table(
    columns: SampleColumns, stacks: NDArray[np.int64], rows: NDArray[np.int64], facts: WindowFacts
) -> Json:
    weights = columns.weight[rows]
    return {
        "stack": stacks[rows].tolist(),
        "time": ((columns.time_ns[rows] - facts.from_ns) / NS_PER_MS).tolist(),
        "weight": None if (weights == 1).all() else weights.tolist(),
        "weightType": "samples",
        # What the viewer draws as the track's height: time on the core since the sample before.
        "threadCPUDelta": (weights * columns.period_ns(facts)).tolist(),
        "length": len(rows),
    }


def _thread(
    name: str, process: str, pid: str, tid: int | str, samples: Json, *, is_main: bool
) -> Json:
    return {
        "processType": "default",
        "processStartupTime": 0,
        "processShutdownTime": None,
        "registerTime": 0,
        "unregisterTime": None,
        "pausedRanges": [],
        "name": name,
        "processName": process,
        "isMainThread": is_main,
        "pid": pid,
        "tid": tid,
        "samples": samples,
        "markers": no_markers(),
    }


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
