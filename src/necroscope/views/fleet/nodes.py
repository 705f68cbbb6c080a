"""The answer of `fleet nodes` as a table."""

from typing import Any, Final

from necroscope.model.units import format_duration
from necroscope.views.fleet.paragraphs import WIDTH, paragraph, table
from necroscope.views.format import MISSING

_MOST: Final = 50
_MOST_LABELS: Final = 4


def nodes_to_text(answer: dict[str, Any], width: int = WIDTH, most: int = _MOST) -> str:
    told = (("silent", "silent"), ("clocks_off", "with a clock that is off"))
    counts = "".join(f", {answer[name]} {words}" for name, words in told if answer[name])
    head = f"{answer['count']} nodes{counts}, {answer['from'][:16]} to {answer['to'][:16]} UTC"
    events = (
        ", ".join(f"{kind} {times}" for kind, times in list(answer["events"].items())[:8]) or "none"
    )
    lines = [*paragraph(head, width), *paragraph(f"events: {events}", width), ""]
    labels = answer["labels"][:_MOST_LABELS]
    rows = [_row(node, labels) for node in answer["nodes"][:most]]
    if rows:
        lines += table(
            ("node", *labels, "cores", "last seen", "events", "incidents", "last cause", ""), rows
        )
    if answer["count"] > most:
        lines.append(f"and {answer['count'] - most} more, see --json or choose with --where")
    return "\n".join(lines)


def _row(node: dict[str, Any], labels: list[str]) -> tuple[object, ...]:
    notes = ["silent"] if node["is_silent"] else []
    notes += [_clock(node["clock_offset_ns"])] if node["is_clock_off"] else []
    return (
        node["node"],
        *(node["labels"].get(label, MISSING) for label in labels),
        node["cpus"] if node["cpus"] is not None else MISSING,
        (node["last_seen"] or MISSING)[:19].replace("T", " "),
        sum(node["events"].values()),
        node["incidents"],
        node["last_cause"] or MISSING,
        ", ".join(notes),
    )


def _clock(offset_ns: int) -> str:
    return (
        f"clock off by {format_duration(abs(offset_ns))} ({'behind' if offset_ns > 0 else 'ahead'})"
    )
