"""What changed between two stretches of a recording: cores, programs, paths, rates, events. It
compares and accuses no one: a cause needs more than a difference.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

from necroscope.analysis.columns import ColumnArrays
from necroscope.analysis.differential import PathChange, compare_stacks
from necroscope.analysis.node import Node
from necroscope.analysis.recording import Recording
from necroscope.analysis.stacks import Stacks
from necroscope.model.core_shares import BUSY_MODES
from necroscope.model.span import Span, merge
from necroscope.model.tables import SOFTIRQ_VECTORS
from necroscope.model.units import NS_PER_S, format_moment

_MOST: Final = 8
# Of a core's time: less is what every node does from minute to minute.
_LEAST_SHARE: Final = 0.05
# A rate has to change by this factor, and to happen this often at its higher side.
_LEAST_FACTOR: Final = 2.0
_LEAST_PER_S: Final = 1.0
# Counters that are sums since the row before.
_RATES: Final = {
    "memory": [
        "pgfault",
        "pgmajfault",
        "pgscan_kswapd",
        "pgscan_direct",
        "allocstall",
        "compact_stall",
        "pswpin",
        "pswpout",
        "workingset_refault",
        "pgmigrate_success",
        "slabs_scanned",
        "oom_kill",
    ],
    "softnet": ["processed", "dropped", "time_squeeze"],
    "softirqs": list(SOFTIRQ_VECTORS),
}


@dataclass(frozen=True, slots=True)
class ValueChange:
    """`what` is a core and its mode, a program, or a counter; both values have the same unit."""

    what: str
    before: float
    now: float


@dataclass(frozen=True, slots=True)
class NewEvent:
    time_ns: int
    kind: str
    message: str


@dataclass(frozen=True, slots=True)
class WindowChanges:
    """`cores` and `pressure` are shares of time, `programs` and paths are in cores, `rates` per
    second. Each list has what changed most first. `events` are of kinds that the baseline lacks.
    """

    window: Span
    baseline: Span
    cores: tuple[ValueChange, ...]
    programs: tuple[ValueChange, ...]
    grown: tuple[PathChange, ...]
    shrunk: tuple[PathChange, ...]
    pressure: tuple[ValueChange, ...]
    rates: tuple[ValueChange, ...]
    events: tuple[NewEvent, ...]

    @property
    def is_empty(self) -> bool:
        return not any(
            (self.cores, self.programs, self.grown, self.shrunk, self.rates, self.events)
        )

    def as_json(self) -> dict[str, Any]:
        return {
            "window": self.window.as_json(),
            "baseline": self.baseline.as_json(),
            **{
                name: [_round(one) for one in getattr(self, name)]
                for name in ("cores", "programs", "grown", "shrunk", "pressure", "rates")
            },
            "events": [
                {"time": format_moment(one.time_ns), "kind": one.kind, "message": one.message}
                for one in self.events
            ],
        }


def _round(change: ValueChange | PathChange) -> dict[str, Any]:
    return asdict(change) | {"before": round(change.before, 4), "now": round(change.now, 4)}


def window_changes(
    recording: Recording, window: Span, baseline: Span, cpu: int | None = None
) -> WindowChanges:
    """On all cores, or on one; what is not of a core is compared in any case."""
    whole = merge([window, baseline])
    # A row covers the time before it: the one at the end belongs to the stretch.
    node = Node(recording, Span(whole[0].from_ns, whole[-1].to_ns + 1))
    now, before = _stacks(node, window, cpu), _stacks(node, baseline, cpu)
    paths = compare_stacks(now, before, _MOST)
    return WindowChanges(
        window,
        baseline,
        _largest(_core_changes(node, window, baseline, cpu), _LEAST_SHARE),
        _largest(_program_changes(now, before), _LEAST_SHARE),
        paths.grown,
        paths.shrunk,
        _largest(_pressure_changes(node, window, baseline), _LEAST_SHARE),
        tuple(_rate_changes(node, window, baseline))[:_MOST],
        tuple(_new_events(node, window, baseline)),
    )


def _stacks(node: Node, span: Span, cpu: int | None) -> Stacks:
    """Shares of paths and programs are of one core: two cores full of a program are 2.0."""
    found = node.stacks(span, None if cpu is None else [cpu])
    return Stacks(found.tree, found.samples, span.length_ns / NS_PER_S, found.period_s)


def _largest(changes: Iterator[ValueChange], least: float) -> tuple[ValueChange, ...]:
    found = [one for one in changes if abs(one.now - one.before) >= least]
    return tuple(sorted(found, key=lambda one: -abs(one.now - one.before))[:_MOST])


def _core_changes(
    node: Node, window: Span, baseline: Span, cpu: int | None
) -> Iterator[ValueChange]:
    for core in node.cpus if cpu is None else [cpu]:
        for mode in (*BUSY_MODES, "iowait"):
            before, now = (node.mode_share(mode, [span], core) for span in (baseline, window))
            if before is not None and now is not None:
                yield ValueChange(f"core {core} {mode}", before, now)


def _program_changes(now: Stacks, before: Stacks) -> Iterator[ValueChange]:
    sides = [_by_program(side) for side in (before, now)]
    for name in dict.fromkeys([*sides[1], *sides[0]]):
        yield ValueChange(name, *(side.get(name, 0.0) for side in sides))


def _by_program(stacks: Stacks) -> dict[str, float]:
    found: dict[str, float] = {}
    for task in stacks.tasks():
        cores = task.weight * stacks.period_s / max(stacks.elapsed_s, 1e-9)
        found[task.comm] = found.get(task.comm, 0.0) + cores
    return found


def _pressure_changes(node: Node, window: Span, baseline: Span) -> Iterator[ValueChange]:
    rows = node.columns("pressure")
    for resource in dict.fromkeys(rows["resource"]) if len(rows) else ():
        own = rows.at(rows["resource"] == resource)
        before, now = (_ratio(own.within([span]), "some_ns") for span in (baseline, window))
        if before is not None and now is not None:
            yield ValueChange(f"{resource} some", before, now)


def _ratio(rows: ColumnArrays, name: str) -> float | None:
    per_second = rows.per_second(name)
    return None if per_second is None else per_second / NS_PER_S


def _rate_changes(node: Node, window: Span, baseline: Span) -> list[ValueChange]:
    found = [
        change
        for table, names in _RATES.items()
        for change in _rates_of(node.columns(table), names, (baseline, window))
    ]
    return sorted(found, key=_factor, reverse=True)


def _rates_of(
    rows: ColumnArrays, names: Sequence[str], spans: Sequence[Span]
) -> Iterator[ValueChange]:
    """Per second of the stretch: rows of a table by core are summed over its cores."""
    sides = [rows.within([span]) for span in spans]
    for name in names:
        totals = [side.total(name) for side in sides]
        rates = [
            None if total is None else total / (span.length_ns / NS_PER_S)
            for total, span in zip(totals, spans, strict=True)
        ]
        change = _value_change(f"{rows.table} {name}", rates)
        if change is not None and _factor(change) >= _LEAST_FACTOR:
            yield change


def _value_change(what: str, rates: Sequence[float | None]) -> ValueChange | None:
    before, now = rates
    if before is None or now is None or max(before, now) < _LEAST_PER_S:
        return None
    return ValueChange(what, before, now)


def _factor(change: ValueChange) -> float:
    """Of a rate that was nothing, as if it had been half of what counts."""
    low, high = sorted((change.before, change.now))
    return high / max(low, _LEAST_PER_S / 2)


def _new_events(node: Node, window: Span, baseline: Span) -> Iterator[NewEvent]:
    """The first of each kind; its line says whether it names a task."""
    rows = node.columns("events")
    times = rows["time"]
    is_before = (times >= baseline.from_ns) & (times < baseline.to_ns)
    known = set(rows["kind"][is_before]) if len(rows) else set()
    for row in np.flatnonzero((times >= window.from_ns) & (times < window.to_ns)):
        kind = rows["kind"][row]
        if kind not in known:
            known.add(kind)
            yield NewEvent(int(times[row]), str(kind), str(rows["message"][row]))
