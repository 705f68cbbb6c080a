"""The page as one HTML file for the incident review: script, style and data within it, nothing
asked of any network.

The page answers from the embedded samples what the server would have answered: windows can still be
brushed, filtered, compared.
"""

import gzip
from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from necroscope.errors import NecroscopeError
from necroscope.model.units import NS_PER_S
from necroscope.store.core_modes import read_core_modes
from necroscope.store.last_rows import read_last_rows
from necroscope.store.query import Store
from necroscope.store.samples import SelectedSampleWindow, read_samples
from necroscope.store.time_limit import TimeLimit
from necroscope.views.web import answers
from necroscope.views.web.binary import packed
from necroscope.views.web.cgroups_answer import cgroups_answer

if TYPE_CHECKING:
    from necroscope.views.web.app import Recording

Span = tuple[int, int]
MOST_SAMPLES: Final = 400_000
LONGEST_NS: Final = 600 * NS_PER_S
_MOST_READ: Final = 20_000_000
_MOST_COLUMNS: Final = 2_000
_TIME_LIMIT_S: Final = 20.0
_POLICY: Final = (
    "default-src 'none'; script-src '{}'; style-src 'unsafe-inline'; img-src data: blob:; base-uri"
    " 'none'; form-action 'none'"
)


def exported_page(
    static: Path, recording: "Recording", view: Span, window: Span | None, state: str
) -> str:
    """`view` is what the lanes hold; samples are of all of it, or if it is long of ten minutes
    around the window.
    """
    data = _data(recording, view, _sampled(view, window), state)
    try:
        script = (
            (static / "assets" / "page.js").read_text("utf-8").replace("</script", "<\\/script")
        )
        style = (static / "assets" / "page.css").read_text("utf-8").replace("</style", "<\\/style")
    except FileNotFoundError:
        raise NecroscopeError(
            "the page was not built", "run `npm ci && npm run build` in web/"
        ) from None
    policy = _POLICY.format("sha256-" + b64encode(sha256(script.encode()).digest()).decode())
    embedded = b64encode(gzip.compress(data, 6, mtime=0)).decode()
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
<title>necroscope</title><link rel="icon" href="data:,"><style>{style}</style></head>
<body><div id="page"></div><script type="text/plain" id="embedded">{embedded}</script>
<script type="module">{script}</script></body></html>
"""


def _sampled(view: Span, window: Span | None) -> Span:
    if view[1] - view[0] <= LONGEST_NS:
        return view
    middle = sum(window or view) // 2
    return max(view[0], middle - LONGEST_NS // 2), min(view[1], middle + LONGEST_NS // 2)


def _data(recording: "Recording", view: Span, sampled: Span, state: str) -> bytes:
    store = recording.store
    span_s = -(-(view[1] - view[0]) // NS_PER_S)
    modes = read_core_modes(
        store, *view, min(span_s, _MOST_COLUMNS), recording.cpus(), TimeLimit(_TIME_LIMIT_S)
    )
    found = read_samples(store, *sampled, most=_MOST_READ, limit=TimeLimit(_TIME_LIMIT_S))
    samples, left_out = _thinned(found)
    description = recording.description()
    header = {
        "state": state,
        "recording": {**description, "from": str(view[0]), "to": str(view[1]), "live": False},
        "gaps": answers.gaps_answer(store, *view),
        "report": _report(recording, view),
        "events": _rows(store, "events", view),
        "tasks": _rows(store, "tasks", view),
        "cgroups": cgroups_answer(store, *view, TimeLimit(_TIME_LIMIT_S)),
        "cores": {
            "from": str(modes.start_ns),
            "column_ns": modes.column_ns,
            "cpus": modes.cpus,
            "left_out": modes.left_out,
        },
        "samples": {
            "from": str(sampled[0]),
            "to": str(sampled[1]),
            "left_out": [*found.left_out, *left_out],
        },
    }
    tables, arrays = _sample_arrays(found, samples, sampled[0])
    cores = {f"cores_{name}": array for name, array in answers.core_bytes(modes).items()}
    return packed({**header, **tables}, {**cores, **arrays})


def _rows(store: Store, table: str, view: Span) -> dict[str, Any]:
    return answers.rows_answer(
        read_last_rows(store, table, *view, most=answers.MOST_ROWS, limit=TimeLimit(_TIME_LIMIT_S))
    )


def _report(recording: "Recording", view: Span) -> dict[str, Any]:
    report = recording.reports.answer()
    inside = [
        item
        for item in report["incidents"]
        if int(item["from_ns"]) < view[1] and int(item["to_ns"]) >= view[0]
    ]
    failed = [
        item
        for item in report["failed"]
        if int(item["from_ns"]) < view[1] and int(item["to_ns"]) >= view[0]
    ]
    notes = list(report["notes"])
    if not report["is_complete"]:
        notes.append(
            f"when this was exported, {report['progress']:.0%} of the recording had been gone"
            " through for incidents"
        )
    return {
        "incidents": inside,
        "notes": notes,
        "failed": failed,
        "is_complete": True,
        "progress": 1.0,
    }


def _thinned(found: SelectedSampleWindow) -> tuple[pa.Table, list[str]]:
    """Every n-th sample, so that the file stays a few megabytes."""
    every = -(-found.count // MOST_SAMPLES)
    if every <= 1:
        return found.tables.samples, []
    return found.tables.samples.take(np.arange(0, found.count, every)), [
        f"one in {every} samples is kept in this file"
    ]


def _sample_arrays(
    found: SelectedSampleWindow, samples: pa.Table, from_ns: int
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Samples by number: of their stack, and of their task (name, process, cgroup)."""
    names, kinds = answers.frame_names(found.tables.frames)
    who = samples.select(["pid", "comm", "cgroup"])
    texts = [tuple(row.values()) for row in who.to_pylist()]
    tasks = {task: number for number, task in enumerate(dict.fromkeys(texts))}
    arrays: dict[str, NDArray[Any]] = {
        "time": (samples.column("time").to_numpy() - from_ns) / 1e6,
        "cpu": samples.column("cpu").to_numpy().astype(np.int32),
        "stack": samples.column("stack").to_numpy().astype(np.int32),
        "weight": samples.column("weight").to_numpy().astype(np.int32),
        "task": np.array([tasks[task] for task in texts], np.int32),
        "parent": found.tables.stacks.column("parent").to_numpy().astype(np.int32),
        "frame": found.tables.stacks.column("frame").to_numpy().astype(np.int32),
        "kind": kinds,
    }
    return {"names": names, "who": [list(task) for task in tasks]}, arrays
