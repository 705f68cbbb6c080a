"""The flame graph of waits: where tasks slept, or who had their core, weighed by milliseconds."""

from typing import Any, Final

import numpy as np
import pyarrow as pa

from necroscope.model.frame import Frame
from necroscope.model.span import Span
from necroscope.model.wait_rows import REACH_NS, last_of_each
from necroscope.segment.reader import SegmentReader
from necroscope.stacks.flame_tree import FlameTree
from necroscope.stacks.merge import merge, tree_of
from necroscope.store.query import Store
from necroscope.store.selection import Selection
from necroscope.store.time_limit import TimeLimit
from necroscope.store.window_reading import WindowReading

UNIT: Final = "ms waited"
_COLUMNS: Final = (
    *("time", "waited_ns", "kind", "is_open", "cpu", "pid", "tid", "comm", "cgroup"),
    *("stack", "by_comm"),
)
_KINDS: Final = {
    "runnable": "[waits for a core]",
    "blocked": "[sleeps in the kernel]",
    "futex": "[waits for a lock of its own]",
    "file_lock": "[waits for a lock on a file]",
    "unread": "[waits until the other end reads]",
    "stopped": "[is stopped]",
    "semaphore": "[waits for a semaphore]",
    "unserved": "[waits for an answer]",
    "asleep": "[sleeps, others behind it]",
    "unanswered": "[waits to read, others behind it]",
}


def read_wait_flame(
    store: Store, window: Span, selection: Selection, limit: TimeLimit | None = None
) -> FlameTree:
    """Below each program the kind of wait, then the kernel's functions, or who had the core. Of a
    wait that began before or ended after the window, the part within it counts.
    """
    reading = WindowReading(store, *window, limit or TimeLimit(), ("waits", "*"))
    rows = [
        row
        for part in reading.segments(lambda reader: _choose_waits(reader, reading, selection))
        for row in part
    ]
    later = store.rows("waits", window.to_ns, window.to_ns + REACH_NS, columns=_COLUMNS)
    rows += [row for row in _pick(later, selection) if _start_ns(row) < window.to_ns]
    rows.sort(key=lambda row: row["time"])
    paths, weights = [], []
    for row in (rows[place] for place in last_of_each(map(_key, rows))):
        stack = [Frame(name, "[kernel]", "kernel", None, None) for name in _functions(row)]
        behind = (
            [f"[behind {row['by_comm']}]"] if row["kind"] == "runnable" and row["by_comm"] else []
        )
        labels = [row["comm"], _KINDS[row["kind"]], *behind]
        paths.append([*(Frame(label, "", "group", None, None) for label in labels), *stack])
        within_ns = min(row["time"], window.to_ns) - max(_start_ns(row), window.from_ns)
        weights.append(max(1, round(within_ns / 1e6)))
    frames = list(dict.fromkeys(frame for path in paths for frame in path))
    number = {frame: place for place, frame in enumerate(frames)}
    tree, ends = tree_of([number[frame] for frame in path] for path in paths)
    level, (places,) = merge(tree)
    weighed = places[ends], np.array(weights, dtype=np.int64)
    recorded_ns = sum(stretch.length_ns for stretch in reading.recorded(selection.cpus))
    return FlameTree.of(level, weighed, frames, window, reading.left_out(), recorded_ns)


def _choose_waits(
    reader: SegmentReader, reading: WindowReading, selection: Selection
) -> list[dict[str, Any]]:
    if reading.stops_before(reader):
        return []
    return _pick(reader.read("waits", reading.from_ns, reading.to_ns, _COLUMNS), selection)


def _pick(rows: pa.Table, selection: Selection) -> list[dict[str, Any]]:
    return [row for row in rows.to_pylist() if _is_chosen(row, selection)]


def _start_ns(row: dict[str, Any]) -> int:
    return int(row["time"]) - int(row["waited_ns"])


def _key(row: dict[str, Any]) -> tuple[object, int, int, bool]:
    return (row["tid"], row["kind"]), row["time"], row["waited_ns"], row["is_open"]


def _functions(row: dict[str, Any]) -> list[str]:
    """Outermost first; who waited for a core had been woken from its sleep."""
    is_asleep = row["stack"] and row["kind"] != "runnable"
    return row["stack"].split(";")[::-1] if is_asleep else []


def _is_chosen(row: dict[str, Any], selection: Selection) -> bool:
    cgroup = selection.cgroup
    is_below = cgroup is None or (
        row["cgroup"] is not None and f"{row['cgroup']}/".startswith(f"{cgroup.rstrip('/')}/")
    )
    wanted = (
        (selection.cpus, row["cpu"]),
        (selection.pids, row["pid"]),
        (selection.tids, row["tid"]),
        (selection.comms, row["comm"]),
    )
    return is_below and all(values is None or value in values for values, value in wanted)
