"""What the lane of counters shows: the kernel's figures that moved most in the window, each as a
line: rates of events, amounts, and the time that work stalled.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from necroscope.model.tables import TABLES
from necroscope.model.units import NS_PER_S
from necroscope.store.last_rows import read_last_rows
from necroscope.store.query import Store
from necroscope.store.time_limit import TimeLimit

MOST_POINTS: Final = 500
MOST_SERIES: Final = 12
_MOST_ROWS: Final = 200_000
# What the kernel counts now, of the tables whose other columns count what happened.
_AMOUNTS: Final = frozenset(
    {"dentries", "dentries_unused", "dentries_negative", "inodes", "conntrack_entries"}
)
# A move this large is worth a line even where there was nothing before.
_NOTABLE: Final = {"per second": 100.0, "bytes": float(64 << 20), "objects": 1_000.0, "share": 0.02}
_RESOURCES: Final = ("cpu", "memory", "io", "irq")
_STALLS: Final = ("some_ns", "full_ns")

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Series:
    name: str
    meaning: str
    unit: str
    times: NDArray[np.int64]
    values: Floats

    @property
    def move(self) -> float:
        """How far it went from its usual, in parts of that. An incident may fill half of the
        view.
        """
        known = self.values[np.isfinite(self.values)]
        if not len(known):
            return 0.0
        usual = float(np.quantile(known, 0.25))
        return float(np.abs(known - usual).max()) / (usual + _NOTABLE[self.unit])

    def as_json(self) -> dict[str, Any]:
        """At most as many points as the lane can show; of those that fall together the largest."""
        starts = np.arange(0, len(self.times), max(1, -(-len(self.times) // MOST_POINTS)))
        values = np.fmax.reduceat(self.values, starts)
        return {
            "name": self.name,
            "meaning": self.meaning,
            "unit": self.unit,
            "time": [str(time) for time in self.times[starts]],
            "value": [None if np.isnan(value) else round(float(value), 4) for value in values],
        }


def counters_answer(store: Store, from_ns: int, to_ns: int, limit: TimeLimit) -> dict[str, Any]:
    """Those that moved most come first; one that did not move is left out, and counted."""
    found: list[_Series] = []
    left_out: list[str] = []
    for table, read in (("memory", _columns), ("network", _columns), ("pressure", _stalls)):
        rows, missing = read_last_rows(store, table, from_ns, to_ns, most=_MOST_ROWS, limit=limit)
        found += read(table, rows) if rows.num_rows else ()
        left_out += missing
    moved = sorted((one for one in found if one.move > 0), key=lambda one: -one.move)
    return {
        "series": [one.as_json() for one in moved[:MOST_SERIES]],
        "calm": len(found) - len(moved[:MOST_SERIES]),
        "left_out": list(dict.fromkeys(left_out)),
    }


def _columns(table: str, rows: pa.Table) -> Iterator[_Series]:
    times, elapsed_s = rows.column("time").to_numpy(), _floats(rows, "elapsed_ns") / NS_PER_S
    for column in TABLES[table].columns[2:]:
        values = _floats(rows, column.name)
        if not np.isfinite(values).any():
            continue
        unit = (
            "bytes"
            if column.name.endswith("_bytes")
            else "objects"
            if column.name in _AMOUNTS
            else "per second"
        )
        shown = values / np.maximum(elapsed_s, 1e-3) if unit == "per second" else values
        yield _Series(f"{table}.{column.name}", column.meaning, unit, times, shown)


def _stalls(table: str, rows: pa.Table) -> Iterator[_Series]:
    for resource in _RESOURCES:
        of_it = rows.filter(pc.equal(rows.column("resource").cast(pa.utf8()), resource))
        if not of_it.num_rows:
            continue
        times, elapsed_ns = of_it.column("time").to_numpy(), _floats(of_it, "elapsed_ns")
        for name in _STALLS:
            part = name.removesuffix("_ns")
            meaning = f"of the time {part} work stalled because {resource} was short"
            shares = _floats(of_it, name) / np.maximum(elapsed_ns, 1.0)
            if np.isfinite(shares).any():
                yield _Series(f"{table}.{resource}.{part}", meaning, "share", times, shares)


def _floats(rows: pa.Table, column: str) -> Floats:
    found: Floats = rows.column(column).cast(pa.float64()).to_numpy()
    return found
