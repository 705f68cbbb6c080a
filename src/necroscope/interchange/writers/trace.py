"""Chrome's trace event format, for https://ui.perfetto.dev, chrome://tracing and other viewers.

Format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU (Trace Event
Format); Perfetto reads it as JSON. Times are microseconds since the window's start.

    process `cores`    a track per core: the task on it (slices), how it spent its time (counters)
    process `events`   what happened at a moment
    each program       a track per thread that waited: for what, and which task was in the way

A slice joins samples of one thread that follow each other, so its ends are as exact as the sampling
period, and what ran between two samples is not seen.
"""

import json
from collections.abc import Iterator
from typing import Any, BinaryIO, Final

import numpy as np
import pyarrow as pa

from necroscope.interchange.writers.window import UNKNOWN, SampleColumns, WindowFacts, columns_of
from necroscope.model.units import NS_PER_US
from necroscope.model.wait_rows import last_of_each
from necroscope.stacks.samples import SampleTables
from necroscope.stacks.tree import Numbers

# Above every pid of Linux (4,194,304), so that no program has the same track.
CORES: Final = 5_000_000
EVENTS: Final = 5_000_001
# Samples come late by a fraction of their period; in a longer pause the thread was off the core.
_JOINED: Final = 1.5
_MODES: Final = ("user", "system", "irq", "softirq", "steal", "iowait")
Json = dict[str, Any]


def write_trace(
    tables: SampleTables,
    facts: WindowFacts,
    out: BinaryIO,
    *,
    cores: pa.Table,
    waits: pa.Table,
    events: pa.Table,
) -> None:
    """`cores`, `waits` and `events` are rows of the tables of those names."""
    found = [
        *_slices(columns_of(tables), facts),
        *_core_shares(cores, facts),
        *_waits(waits, facts),
        *_happenings(events, facts),
    ]
    trace = {
        "displayTimeUnit": "ms",
        "otherData": {"recording": facts.title, "left out": list(facts.left_out)},
        "traceEvents": [*_names(found), *found],
    }
    out.write(json.dumps(trace, separators=(",", ":")).encode())


def _slices(columns: SampleColumns, facts: WindowFacts) -> Iterator[Json]:
    """Samples of one thread on one core, as long as no other thread and no pause comes between."""
    period_ns = columns.period_ns(facts)
    order = np.lexsort((columns.time_ns, columns.cpu))
    time_ns, cpu, tid = (each[order] for each in (columns.time_ns, columns.cpu, columns.tid))
    begins = np.ones(len(order), np.bool_)
    begins[1:] = (np.diff(cpu) != 0) | (np.diff(tid) != 0)
    begins[1:] |= np.diff(time_ns) > _JOINED * period_ns
    starts = np.flatnonzero(begins)
    for first, end in zip(starts, [*starts[1:], len(order)], strict=True):
        rows, core = order[first:end], int(cpu[first])
        until_ns = int(time_ns[end - 1]) + period_ns
        if end < len(order) and cpu[end] == core:
            until_ns = min(until_ns, int(time_ns[end]))
        yield {
            **_event("X", CORES, max(core, 0), _comm(columns, rows[0])),
            **_time(int(time_ns[first]), until_ns, facts),
            "args": _described(columns, rows),
        }


def _described(columns: SampleColumns, rows: Numbers) -> Json:
    row = int(rows[0])
    innermost = columns.tree.frame[columns.stack[rows]]
    functions, counts = np.unique(innermost, return_counts=True)
    frame = columns.frames[int(functions[counts.argmax()])]
    cgroup = int(columns.cgroup[row])
    return {
        "pid": int(columns.pid[row]),
        "tid": int(columns.tid[row]),
        **({"cgroup": columns.cgroups[cgroup]} if cgroup != UNKNOWN else {}),
        "mostly in": frame.function or frame.module,
        "samples": int(columns.weight[rows].sum()),
    }


def _comm(columns: SampleColumns, row: int) -> str:
    comm = int(columns.comm[row])
    return columns.comms[comm] if comm != UNKNOWN else f"thread {int(columns.tid[row])}"


def _core_shares(cores: pa.Table, facts: WindowFacts) -> Iterator[Json]:
    """A row is the time before it: its counter begins where the row before it ends."""
    for row in cores.to_pylist():
        elapsed_ns = row["elapsed_ns"]
        if not elapsed_ns:
            continue
        yield {
            **_event("C", CORES, 0, f"core {row['cpu']}, percent of time"),
            **_time(max(row["time"] - elapsed_ns, facts.from_ns), None, facts),
            "args": {
                mode: round(100 * row[f"{mode}_ns"] / elapsed_ns, 1)
                for mode in _MODES
                if row[f"{mode}_ns"] is not None
            },
        }


def _waits(waits: pa.Table, facts: WindowFacts) -> Iterator[Json]:
    """The parts of waits that lie in the window."""
    rows = waits.to_pylist()
    keys = [
        ((row["pid"], row["tid"], row["kind"]), row["time"], row["waited_ns"], row["is_open"])
        for row in rows
    ]
    for place in last_of_each(keys):
        row = rows[place]
        first_ns = max(row["time"] - row["waited_ns"], facts.from_ns)
        if first_ns >= facts.to_ns:
            continue
        details = ("comm", "cpu", "cgroup", "stack", "by_comm", "by_pid", "by_stack", "is_open")
        yield {
            **_event("X", row["pid"], row["tid"], f"waits: {row['kind']}"),
            **_time(first_ns, min(row["time"], facts.to_ns), facts),
            "args": {name: row[name] for name in details if row[name] is not None},
        }


def _happenings(events: pa.Table, facts: WindowFacts) -> Iterator[Json]:
    for row in events.to_pylist():
        details = ("message", "cpu", "device", "queue", "pid", "comm")
        yield {
            **_event("i", EVENTS, 0, row["kind"]),
            **_time(row["time"], None, facts),
            "s": "g",
            "args": {name: row[name] for name in details if row[name] is not None},
        }


def _event(phase: str, pid: int, tid: int, name: str) -> Json:
    return {"ph": phase, "pid": pid, "tid": tid, "name": name}


def _time(from_ns: int, to_ns: int | None, facts: WindowFacts) -> Json:
    start = {"ts": (from_ns - facts.from_ns) / NS_PER_US}
    return start if to_ns is None else start | {"dur": max(to_ns - from_ns, 0) / NS_PER_US}


def _names(found: list[Json]) -> Iterator[Json]:
    """What the tracks are called; cores first, programs by number after them."""
    threads = {(each["pid"], each["tid"]): each for each in found if each["ph"] == "X"}
    programs = {pid: each["args"].get("comm") for (pid, _), each in threads.items()}
    fixed = {CORES: ("cores", 0), EVENTS: ("events", 1)}
    for pid in sorted({each["pid"] for each in found}):
        text, place = fixed.get(pid, (f"{programs.get(pid)} ({pid})", 2))
        yield _event("M", pid, 0, "process_name") | {"args": {"name": text}}
        yield _event("M", pid, 0, "process_sort_index") | {"args": {"sort_index": place}}
    for (pid, tid), each in sorted(threads.items()):
        text = f"core {tid}" if pid == CORES else each["args"].get("comm", str(tid))
        yield _event("M", pid, tid, "thread_name") | {"args": {"name": text}}
