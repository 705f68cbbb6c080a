"""The pages as one HTML file: script, style and data within it, nothing asked of any network. It is
the only self-contained HTML: of an incident for its review, of a flame graph, of a fleet's.

The page answers from the embedded samples what the server would have answered: windows can still be
brushed, filtered, compared.
"""

import gzip
import json
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import numpy as np
from numpy.typing import NDArray

from necroscope.errors import NecroscopeError, UsageError
from necroscope.model.span import Span, merge
from necroscope.model.units import NS_PER_S
from necroscope.stacks.frames import frames_at
from necroscope.stacks.samples import SampleTables
from necroscope.store.core_modes import read_core_modes
from necroscope.store.flame import ALL
from necroscope.store.last_rows import read_last_rows
from necroscope.store.longest_waits import WaitHistory
from necroscope.store.merged_samples import merge_samples
from necroscope.store.query import Store
from necroscope.store.samples import read_samples
from necroscope.store.seen_cores import SeenCores
from necroscope.store.selection import Selection
from necroscope.store.time_limit import TimeLimit
from necroscope.views.web import answers
from necroscope.views.web.answers import pack_arrays
from necroscope.views.web.cgroups_answer import cgroups_answer
from necroscope.views.web.counters_answer import counters_answer
from necroscope.views.web.waits_answer import waits_answer

STATIC: Final = Path(__file__).parent / "static"
MOST_SAMPLES: Final = 400_000
LONGEST_NS: Final = 600 * NS_PER_S
_MOST_READ: Final = 20_000_000
_MOST_COLUMNS: Final = 2_000
_TIME_LIMIT_S: Final = 20.0
_POLICY: Final = (
    "default-src 'none'; script-src '{}'; style-src 'unsafe-inline'; img-src data: blob:; base-uri"
    " 'none'; form-action 'none'"
)


@dataclass(frozen=True, slots=True)
class Export:
    """What a file holds: the lanes of `view`, and samples of `selection` in all of it, or if it is
    long in `windows`. `report` is None where nothing was diagnosed.

    `state` is the page's address, to open at; `flame` answers exactly what is asked there.
    """

    view: Span
    windows: Sequence[Span] = ()
    state: str = ""
    report: dict[str, Any] | None = None
    selection: Selection = ALL
    flame: answers.Parts | None = None
    notes: Sequence[str] = ()


def state_words(
    view: Span, window: Span, baseline: Span | None = None, **words: str | int | None
) -> str:
    """The page's address after #: see web/src/logic/state.ts."""
    spans = {"view": view, "window": window, "baseline": baseline}
    times = {
        name: f"{span[0] / 1e3:.0f}-{span[1] / 1e3:.0f}" for name, span in spans.items() if span
    }
    return urlencode({**times, **{name: word for name, word in words.items() if word is not None}})


def exported_page(
    store: Store, description: dict[str, Any], export: Export, static: Path = STATIC
) -> str:
    """`description` is the recording's, as the page asks for it."""
    data = _data(store, description, export)
    return _document(static, "page", data, "necroscope")


def exported_flame(answer: dict[str, Any], title: str, static: Path = STATIC) -> str:
    """The flame graph of a fleet: the JSON of its answer."""
    file = {"title": title, "from": answer["from"], "to": answer["to"], "answer": answer}
    return _document(static, "fleet", json.dumps(file).encode(), "necroscope fleet")


def describe(store: Store, version: str) -> dict[str, Any]:
    """A recording that nothing writes to any more, as the page asks for it."""
    info = store.info()
    cpus = SeenCores(store).cpus() or range(info.cpus or 0)
    return answers.recording_answer(info, cpus, is_live=False, version=version)


def check_built(static: Path = STATIC) -> None:
    """Before long work: a checkout has no page until it is built."""
    if not (static / "assets" / "page.js").is_file():
        raise NecroscopeError(
            "the page was not built", "run `npm ci && npm run build` in web/, or scripts/setup"
        )


def _document(static: Path, name: str, data: bytes, title: str) -> str:
    check_built(static)
    script, style = (
        (static / "assets" / f"{name}.{kind}").read_text("utf-8") for kind in ("js", "css")
    )
    script = script.replace("</script", "<\\/script")
    style = style.replace("</style", "<\\/style")
    policy = _POLICY.format("sha256-" + b64encode(sha256(script.encode()).digest()).decode())
    embedded = b64encode(gzip.compress(data, 6, mtime=0)).decode()
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
<title>{title}</title><link rel="icon" href="data:,"><style>{style}</style></head>
<body><div id="page"></div><script type="text/plain" id="embedded">{embedded}</script>
<script type="module">{script}</script></body></html>
"""


def _choose_sampled(view: Span, windows: Sequence[Span]) -> list[Span]:
    """All of a short view; of a long one ten minutes in all, in and around the windows."""
    if view[1] - view[0] <= LONGEST_NS:
        return [view]
    wanted = windows or [view]
    most_ns = LONGEST_NS // len(wanted)
    spans: list[Span] = []
    for from_ns, to_ns in wanted:
        start_ns = max(view[0], (from_ns + to_ns - most_ns) // 2)
        spans.append(Span(start_ns, min(view[1], start_ns + most_ns)))
    return merge(spans)


def _data(store: Store, description: dict[str, Any], export: Export) -> bytes:
    view = export.view
    span_s = -(-(view[1] - view[0]) // NS_PER_S)
    modes = read_core_modes(
        store, *view, min(span_s, _MOST_COLUMNS), description["cpus"], TimeLimit(_TIME_LIMIT_S)
    )
    spans = _choose_sampled(view, export.windows)
    samples, left_out = _read_samples(store, spans, export.selection)
    flame, flame_arrays = export.flame or (None, {})
    header = {
        "state": export.state,
        "recording": {**description, "from": str(view[0]), "to": str(view[1]), "live": False},
        "gaps": answers.gaps_answer(store, *view),
        "report": export.report and _report(export.report, view),
        "flame": flame,
        "events": _rows(store, "events", view),
        "tasks": _rows(store, "tasks", view),
        "cgroups": cgroups_answer(store, *view, TimeLimit(_TIME_LIMIT_S)),
        "counters": counters_answer(store, *view, TimeLimit(_TIME_LIMIT_S)),
        "waits": waits_answer(WaitHistory(store).longest(view, TimeLimit(_TIME_LIMIT_S))),
        "cores": {
            "from": str(modes.start_ns),
            "column_ns": modes.column_ns,
            "cpus": modes.cpus,
            "left_out": modes.left_out,
        },
        "samples": {
            "spans": [[str(from_ns), str(to_ns)] for from_ns, to_ns in spans],
            "left_out": [*left_out, *export.notes],
        },
    }
    tables, arrays = _sample_arrays(samples, spans[0][0])
    cores = {f"cores_{name}": array for name, array in answers.core_bytes(modes).items()}
    exact = {f"flame_{name}": array for name, array in flame_arrays.items()}
    return pack_arrays({**header, **tables}, {**cores, **arrays, **exact})


def _read_samples(
    store: Store, spans: Sequence[Span], selection: Selection
) -> tuple[SampleTables, list[str]]:
    """At most MOST_SAMPLES: of more every n-th, so that the file stays a few megabytes. A span that
    holds too many to read is left out: the lanes and the first graph do not need it.
    """
    limit, parts, reasons = TimeLimit(_TIME_LIMIT_S), [], []
    for span in spans:
        try:
            found = read_samples(store, *span, selection, most=_MOST_READ, limit=limit)
        except UsageError as error:
            reasons.append(error.facts)
            continue
        parts.append(found.tables)
        reasons += found.left_out
    left_out = list(dict.fromkeys(reasons))
    tables = merge_samples(parts)
    every = -(-tables.samples.num_rows // MOST_SAMPLES)
    if every > 1:
        kept = np.arange(0, tables.samples.num_rows, every)
        tables = SampleTables(tables.samples.take(kept), tables.stacks, tables.frames)
        left_out.append(f"one in {every} samples is kept in this file")
    return tables, left_out


def _rows(store: Store, table: str, view: Span) -> dict[str, Any]:
    return answers.rows_answer(
        read_last_rows(store, table, *view, most=answers.MOST_ROWS, limit=TimeLimit(_TIME_LIMIT_S))
    )


def _report(report: dict[str, Any], view: Span) -> dict[str, Any]:
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


def _sample_arrays(
    tables: SampleTables, from_ns: int
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Samples by number: of their stack, and of their task (name, process, cgroup, thread)."""
    samples, stacks = tables.samples, tables.stacks
    names, kinds = answers.frame_names(frames_at(tables.frames))
    who = [
        tuple(row.values()) for row in samples.select(["pid", "comm", "cgroup", "tid"]).to_pylist()
    ]
    tasks = {task: number for number, task in enumerate(dict.fromkeys(who))}
    arrays: dict[str, NDArray[Any]] = {
        "time": (samples.column("time").to_numpy() - from_ns) / 1e6,
        "cpu": samples.column("cpu").to_numpy().astype(np.int32),
        "stack": samples.column("stack").to_numpy().astype(np.int32),
        "weight": samples.column("weight").to_numpy().astype(np.int32),
        "task": np.array([tasks[task] for task in who], np.int32),
        "parent": stacks.column("parent").to_numpy().astype(np.int32),
        "frame": stacks.column("frame").to_numpy().astype(np.int32),
        "kind": kinds,
    }
    return {"names": names, "who": [list(task) for task in tasks]}, arrays
