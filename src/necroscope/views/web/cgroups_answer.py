"""What the lane of cgroups shows: how many there are and how many are dead, and what was
restarted.
"""

import json
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from necroscope.store.last_rows import read_last_rows
from necroscope.store.query import Store
from necroscope.store.time_limit import TimeLimit

MOST_POINTS: Final = 2_000
_MOST_RESTARTS: Final = 5_000
_MOST_ROWS: Final = 1_000_000
_COUNTS: Final = ("tracked", "visible", "dying")
_RESTARTS: Final = ("unit_restart", "container_start", "container_die")


def cgroups_answer(store: Store, from_ns: int, to_ns: int, limit: TimeLimit) -> dict[str, Any]:
    """The counts of the memory hierarchy's root, or of all of cgroup v2; and what was restarted."""
    columns = ["time", "controller", "path", *_COUNTS]
    rows, counts_left_out = read_last_rows(
        store, "cgroups", from_ns, to_ns, columns=columns, most=_MOST_ROWS, limit=limit
    )
    columns = ["time", "kind", "message", "fields"]
    events, events_left_out = read_last_rows(
        store, "events", from_ns, to_ns, columns=columns, most=_MOST_ROWS, limit=limit
    )
    restarts = _restarts(events)
    cut = len(restarts) - _MOST_RESTARTS
    left_out = [*counts_left_out, *events_left_out]
    if cut > 0:
        left_out.append(f"{cut} earlier restarts")
    return {
        "series": _series(_of_all(rows)),
        "restarts": restarts[-_MOST_RESTARTS:],
        "left_out": list(dict.fromkeys(left_out)),
    }


def _of_all(rows: pa.Table) -> pa.Table:
    roots = rows.filter(pc.equal(rows.column("path"), "/"))
    for name in ("memory", "unified"):
        if (own := roots.filter(pc.equal(roots.column("controller"), name))).num_rows:
            return own
    return roots.slice(0, 0)


def _restarts(events: pa.Table) -> list[dict[str, Any]]:
    is_restart = pc.is_in(events.column("kind").cast(pa.utf8()), pa.array(_RESTARTS))
    return [
        {
            "time": str(row["time"]),
            "kind": row["kind"],
            "message": row["message"],
            "fields": json.loads(row["fields"] or "{}"),
        }
        for row in events.filter(is_restart).to_pylist()
    ]


def _series(rows: pa.Table) -> dict[str, list[Any]]:
    """At most as many points as a screen has; of those that fall together the largest."""
    starts = np.arange(0, rows.num_rows, max(1, -(-rows.num_rows // MOST_POINTS)))
    times = rows.column("time").to_numpy()[starts] if rows.num_rows else ()
    return {"time": [str(time) for time in times]} | {
        name: _largest(rows.column(name), starts) for name in _COUNTS
    }


def _largest(column: pa.ChunkedArray, starts: NDArray[np.int64]) -> list[int | None]:
    if not len(starts):
        return []
    found = np.fmax.reduceat(column.cast(pa.float64()).to_numpy(), starts)
    return [None if np.isnan(value) else int(value) for value in found]
