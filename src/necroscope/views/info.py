"""What a recording holds, as text and as JSON."""

from typing import Any

from necroscope.model.names import LINE_LIMIT
from necroscope.model.reading import Gap
from necroscope.model.tables import TABLES
from necroscope.model.units import NS_PER_S, format_bytes, format_duration, format_moment
from necroscope.store.query import RecordingInfo, Store
from necroscope.views.format import literal

_GAP_LINES = 12


# Less than this is how NTP steers a clock.
_NOTABLE_LEAD_NS = NS_PER_S // 2
_LAST_NS = 3600 * NS_PER_S


def clock_lead_ns(store: Store) -> int:
    """How far the recording's timeline lay from the machine's clock in its last hour, at most. The
    timeline never steps back: a clock that was set back leaves it ahead.
    """
    _, end_ns = store.span()
    rows = store.rows("anchors", end_ns - _LAST_NS, end_ns + 1, columns=["time", "realtime_ns"])
    times, clocks = (rows.column(name).to_pylist() for name in ("time", "realtime_ns"))
    return max((at - clock for at, clock in zip(times, clocks, strict=True)), key=abs, default=0)


def info_to_json(info: RecordingInfo, lead_ns: int = 0) -> dict[str, Any]:
    """The shape that `info --json` promises; times are ISO 8601, None while nothing is recorded."""
    return {
        "schema": info.schema,
        "node": info.node,
        "labels": info.labels,
        "from": _moment(info.from_ns),
        "to": _moment(info.to_ns),
        "cpus": info.cpus,
        "segments": info.segments,
        "bytes": info.bytes,
        "tables": info.tables,
        "gaps": [_gap_to_json(gap) for gap in info.gaps],
        "lost_samples": info.lost_samples,
        "idle_samples": info.idle_samples,
        "pins": [
            {"from": _moment(pin.from_ns), "to": _moment(pin.to_ns), "reason": pin.reason}
            for pin in info.pins
        ],
        "clock_lead_ns": lead_ns,
    }


def info_to_text(info: RecordingInfo, lead_ns: int = 0) -> str:
    """Names, causes and reasons come from a machine, or from the recording's author: no line
    may steer a terminal.
    """
    return "\n".join(literal(line, LINE_LIMIT) for line in _lines(info, lead_ns))


def _lines(info: RecordingInfo, lead_ns: int) -> list[str]:
    labels = "".join(f", {key}={value}" for key, value in sorted(info.labels.items()))
    lines = [f"node      {info.node}{labels}"]
    if info.from_ns is None or info.to_ns is None:
        return [*lines, "nothing is recorded yet"]
    return [
        *lines,
        f"from      {format_moment(info.from_ns)}",
        f"to        {format_moment(info.to_ns)}  ({format_duration(info.to_ns - info.from_ns)})",
        *_clock_lines(lead_ns),
        f"cores     {'–' if info.cpus is None else info.cpus}",
        (
            f"size      {format_bytes(info.bytes)} in {info.segments}"
            f" segment{'s' * (info.segments != 1)}"
        ),
        (
            f"samples   {info.tables.get('samples', 0)} kept, {info.idle_samples} of idle cores"
            f" dropped, {info.lost_samples} lost"
        ),
        "",
        *_table_lines(info),
        "",
        *_gap_lines(info.gaps),
        *[
            f"pinned    {format_moment(pin.from_ns)} to {format_moment(pin.to_ns)}  {pin.reason}"
            for pin in info.pins
        ],
    ]


def _clock_lines(lead_ns: int) -> list[str]:
    if abs(lead_ns) < _NOTABLE_LEAD_NS:
        return []
    how = "ahead of" if lead_ns > 0 else "behind"
    return [f"clock     times are {format_duration(abs(lead_ns))} {how} the machine's clock"]


def _table_lines(info: RecordingInfo) -> list[str]:
    width = max((len(name) for name in info.tables), default=0)
    return [
        f"{rows:>12}  {name:<{width}}  {TABLES[name].meaning}" for name, rows in info.tables.items()
    ]


def _gap_lines(gaps: list[Gap]) -> list[str]:
    """The longest first; what is left out is counted."""
    if not gaps:
        return ["no gaps"]
    shown = sorted(gaps, key=lambda gap: gap.from_ns - gap.to_ns)[:_GAP_LINES]
    lines = [_gap_line(gap) for gap in sorted(shown, key=lambda gap: gap.from_ns)]
    left_out = len(gaps) - len(shown)
    return [*lines, f"          and {left_out} shorter gaps, see --json"] if left_out else lines


def _gap_line(gap: Gap) -> str:
    length = format_duration(gap.to_ns - gap.from_ns) if gap.to_ns > gap.from_ns else ""
    core = "" if gap.cpu is None else f" of core {gap.cpu}"
    lost = f" ({gap.lost} lost)" if gap.lost else ""
    return (
        f"gap       {format_moment(gap.from_ns)}  {length:<8}  {gap.table}{core}: {gap.cause}{lost}"
    )


def _moment(time_ns: int | None) -> str | None:
    return None if time_ns is None else format_moment(time_ns)


def _gap_to_json(gap: Gap) -> dict[str, Any]:
    found: dict[str, Any] = {
        "table": gap.table,
        "from": format_moment(gap.from_ns),
        "to": format_moment(gap.to_ns),
        "cause": gap.cause,
    }
    return found | {
        name: value for name, value in (("cpu", gap.cpu), ("lost", gap.lost)) if value is not None
    }
