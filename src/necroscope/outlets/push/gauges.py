"""Numbers of the node that grow or shrink, as rows of the lake's `gauges`: when one changed by some
percent, and daily.

A count that grows for a week is some dozens of rows this way, and is known to the same percent at
any moment between two of them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from necroscope.fleet.lake_tables import DAY_NS
from necroscope.fleet.protocol import EARLIEST_NS
from necroscope.model.span import Span
from necroscope.model.units import NS_PER_S
from necroscope.store.query import Store

UPTIME: Final = "uptime_s"
DEAD_CGROUPS: Final = "dead_cgroups"


@dataclass(frozen=True, slots=True)
class PushedGauge:
    """`step` is the change that is worth a row, in parts of the value; one row in `least_s`."""

    name: str
    step: float = 0.05
    least_s: int = 600


_MEMORY: Final = ("dentries", "inodes", "slab_bytes", "percpu_bytes", "page_tables_bytes")
GAUGES: Final = {
    gauge.name: gauge
    for gauge in (
        PushedGauge(UPTIME),
        PushedGauge(DEAD_CGROUPS),
        PushedGauge("live_cgroups"),
        *(PushedGauge(name, 0.1, 3600) for name in _MEMORY),
        # Load comes and goes: only what lasts is reported.
        PushedGauge("busy_cores", 0.5, 3600),
    )
}
# Populations (`population:tcp-sockets`): how much of what users make the kernel holds.
_POPULATION: Final = PushedGauge("population:", 0.1, 3600)
_MOST_POPULATIONS: Final = 40
_MOST_NAMES: Final = 200
_CGROUPS: Final = ("time", "controller", "path", "tracked", "visible", "dying")

# Of each gauge that was pushed: when, and its value.
Pushed = dict[str, list[float]]


def gauge_rows(store: Store, span: Span, pushed: Pushed) -> list[dict[str, Any]]:
    """What is worth a row at the end of a span; `pushed` takes it in."""
    time_ns = span.to_ns - 1
    if time_ns < EARLIEST_NS:
        return []
    found = []
    for name, value in _read(store, span):
        before_ns, before = pushed.get(name, [0, 0.0])
        age_ns = time_ns - before_ns
        gauge = GAUGES.get(name, _POPULATION)
        if name not in pushed and len(pushed) >= _MOST_NAMES:
            continue
        has_changed = abs(value - before) > gauge.step * abs(before)
        is_due = age_ns >= DAY_NS or age_ns < 0
        if is_due or (has_changed and age_ns >= gauge.least_s * NS_PER_S):
            pushed[name] = [time_ns, value]
            found.append({"time": time_ns, "name": name, "value": value})
    return found


def _read(store: Store, span: Span) -> Iterator[tuple[str, float]]:
    """Each as it last was in the span; one that was not measured is not there."""
    anchors = store.rows("anchors", *span, columns=("time", "boottime_ns"))
    if anchors.num_rows:
        yield UPTIME, _last(anchors, "boottime_ns") / NS_PER_S
    yield from _cgroups(store.rows("cgroups", *span, columns=_CGROUPS))
    yield from _populations(store.rows("populations", *span, columns=("kind", "count", "pid")))
    memory = store.rows("memory", *span, columns=("time", *_MEMORY))
    for name in _MEMORY if memory.num_rows else ():
        value = memory.column(name)[-1].as_py()
        if value is not None:
            yield name, float(value)
    cores = store.rows("cores", *span, columns=("time", "elapsed_ns", "idle_ns", "iowait_ns"))
    if cores.num_rows:
        elapsed, idle, waiting = (
            float(pc.sum(cores.column(name)).as_py())
            for name in ("elapsed_ns", "idle_ns", "iowait_ns")
        )
        ticks = len(pc.unique(cores.column("time")))
        busy = max(0.0, 1 - (idle + waiting) / elapsed) if elapsed else 0.0
        yield "busy_cores", round(busy * cores.num_rows / ticks, 2)


def _cgroups(rows: pa.Table) -> Iterator[tuple[str, float]]:
    """Of the whole hierarchy: that of memory where it has one of its own."""
    whole = rows.filter(pc.equal(pc.cast(rows.column("path"), pa.string()), "/"))
    names = pc.cast(whole.column("controller"), pa.string())
    for controller in ("memory", "unified"):
        own = whole.filter(pc.equal(names, controller))
        if own.num_rows:
            last = own.slice(own.num_rows - 1).to_pylist()[0]
            break
    else:
        return
    tracked, visible, dying = (last[name] for name in ("tracked", "visible", "dying"))
    if dying is None and tracked is not None and visible is not None:
        dying = max(0, tracked - visible)
    if dying is not None:
        yield DEAD_CGROUPS, float(dying)
    if visible is not None:
        yield "live_cgroups", float(visible)


def _populations(rows: pa.Table) -> Iterator[tuple[str, float]]:
    """Of the node, not of single processes; of many kinds the largest."""
    last = {row["kind"]: row["count"] for row in rows.to_pylist() if row["pid"] is None}
    largest = sorted(last, key=lambda kind: (-last[kind], kind))[:_MOST_POPULATIONS]
    for kind in largest:
        yield f"{_POPULATION.name}{kind}", float(last[kind])


def _last(rows: pa.Table, name: str) -> float:
    return float(rows.column(name)[-1].as_py())
