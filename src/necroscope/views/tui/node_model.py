"""What concerns the node as a whole: zombie cgroups, pressure, the last events and gaps."""

from typing import Final

from necroscope.model.reading import Row, Rows, Value
from necroscope.model.tables import TABLES
from necroscope.model.top_source import TopSource
from necroscope.model.units import NS_PER_S
from necroscope.views.format import literal, time_of_day
from necroscope.views.tui.screen import ScreenEvent, Zombies
from necroscope.views.tui.ticks import TIME, number, optional

HAPPENINGS: Final = 100
RESOURCES: Final = ("cpu", "memory", "io", "irq")
# Cgroups are counted every 10 s; over a shorter stretch a rate would be noise.
_CGROUP_WINDOW_NS: Final = 120 * NS_PER_S
_CGROUP_FRESH_NS: Final = 25 * NS_PER_S
_RATE_NS: Final = 20 * NS_PER_S
_ALARMING_SEVERITY: Final = 3

_CONTROLLER, _PATH, _TRACKED, _DYING = map(
    TABLES["cgroups"].index_of, ("controller", "path", "tracked", "dying")
)
_RESOURCE, _PRESSURE_ELAPSED, _SOME = map(
    TABLES["pressure"].index_of, ("resource", "elapsed_ns", "some_ns")
)
_EVENT = {column.name: index for index, column in enumerate(TABLES["events"].columns)}
_GAP = {column.name: index for index, column in enumerate(TABLES["gaps"].columns)}


def zombies(source: TopSource, at_ns: int) -> Zombies | None:
    """Dying memory cgroups; where the kernel counts only all controllers together, those. None if
    nothing counted them lately.
    """
    rows = [
        row for row in source.rows("cgroups", at_ns - _CGROUP_WINDOW_NS, at_ns) if row[_PATH] == "/"
    ]
    for controller in ("memory", "unified"):
        counts = [
            row for row in rows if row[_CONTROLLER] == controller and row[_TRACKED] is not None
        ]
        if counts and at_ns - number(counts[-1][TIME]) <= _CGROUP_FRESH_NS:
            return Zombies(
                controller,
                optional(counts[-1][_DYING]),
                optional(counts[-1][_TRACKED]),
                _per_minute(counts),
            )
    return None


def pressure(rows: Rows) -> dict[str, float | None]:
    """Share of the last tick in which some task stalled, by resource; None where this kernel does
    not say.
    """
    known = {row[_RESOURCE]: row for row in rows}
    return {resource: _worst_wait_s(known.get(resource)) for resource in RESOURCES}


def happenings(events: Rows, gaps: Rows) -> tuple[ScreenEvent, ...]:
    """Events and gaps, newest first."""
    found = [_event(row) for row in events[-HAPPENINGS:]] + [
        _gap(row) for row in gaps[-HAPPENINGS:]
    ]
    return tuple(sorted(found, key=lambda happening: happening.time_ns, reverse=True)[:HAPPENINGS])


def _event(row: Row) -> ScreenEvent:
    severity = number(row[_EVENT["severity"]])
    where = [
        _core_name(row[_EVENT["cpu"]]),
        _text(row[_EVENT["device"]]),
        _text(row[_EVENT["comm"]]),
    ]
    forged = "" if row[_EVENT["by_kernel"]] else "(not by the kernel) "
    return ScreenEvent(
        number(row[TIME]),
        _text(row[_EVENT["kind"]]),
        " ".join(filter(None, where)),
        forged + _text(row[_EVENT["message"]]),
        severity <= _ALARMING_SEVERITY and bool(row[_EVENT["by_kernel"]]),
    )


def _gap(row: Row) -> ScreenEvent:
    start_ns, end_ns, lost = number(row[TIME]), number(row[_GAP["end"]]), row[_GAP["lost"]]
    until = f" until {time_of_day(end_ns)}" if end_ns - start_ns >= NS_PER_S else ""
    count = f" ({lost:,} lost)" if isinstance(lost, int) else ""
    table = "all tables" if row[_GAP["table"]] == "*" else _text(row[_GAP["table"]])
    where = " ".join(filter(None, (table, _core_name(row[_GAP["cpu"]]))))
    return ScreenEvent(start_ns, "gap", where, f"{_text(row[_GAP['cause']])}{count}{until}", False)


def _per_minute(counts: Rows) -> float | None:
    known = [row for row in counts if row[_DYING] is not None]
    if not known or (elapsed_ns := number(known[-1][TIME]) - number(known[0][TIME])) < _RATE_NS:
        return None
    return (number(known[-1][_DYING]) - number(known[0][_DYING])) * 60 * NS_PER_S / elapsed_ns


def _worst_wait_s(row: Row | None) -> float | None:
    if row is None or row[_SOME] is None:
        return None
    return min(number(row[_SOME]) / max(number(row[_PRESSURE_ELAPSED]), 1), 1.0)


def _core_name(value: Value) -> str:
    return "" if value is None else f"cpu {value}"


def _text(value: Value) -> str:
    return "" if value is None else literal(str(value))
