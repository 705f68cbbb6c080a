"""What the lane of cgroups shows: how many there are and how many are dead, and what was restarted."""

import json
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from necroscope.store.query import Store

MOST_POINTS: Final = 2_000
_MOST_RESTARTS: Final = 5_000
_COUNTS: Final = ("tracked", "visible", "dying")
_RESTARTS: Final = ("unit_restart", "container_start", "container_die")


def cgroups_answer(store: Store, from_ns: int, to_ns: int) -> dict[str, Any]:
    """The counts of the memory hierarchy's root, or of all of cgroup v2; and what was restarted."""
    rows = store.rows("cgroups", from_ns, to_ns, columns=("time", "controller", "path", *_COUNTS))
    roots = rows.filter(pc.equal(rows.column("path"), "/"))
    chosen = next(
        (own for name in ("memory", "unified") if (own := roots.filter(pc.equal(roots.column("controller"), name))).num_rows),
        roots.slice(0, 0),
    )
    events = store.rows("events", from_ns, to_ns, columns=("time", "kind", "message", "fields")).to_pylist()
    restarts = [
        {"time": str(row["time"]), "kind": row["kind"], "message": row["message"], "fields": json.loads(row["fields"] or "{}")}
        for row in events
        if row["kind"] in _RESTARTS
    ]
    return {"series": _series(chosen), "restarts": restarts[-_MOST_RESTARTS:]}


def _series(rows: pa.Table) -> dict[str, list[Any]]:
    """At most as many points as a screen has; of those that fall together the largest."""
    starts = np.arange(0, rows.num_rows, max(1, -(-rows.num_rows // MOST_POINTS)))
    times = rows.column("time").to_numpy()[starts] if rows.num_rows else ()
    return {"time": [str(time) for time in times]} | {name: _largest(rows.column(name), starts) for name in _COUNTS}


def _largest(column: pa.ChunkedArray, starts: NDArray[np.int64]) -> list[int | None]:
    if not len(starts):
        return []
    found = np.fmax.reduceat(column.cast(pa.float64()).to_numpy(), starts)
    return [None if np.isnan(value) else int(value) for value in found]
