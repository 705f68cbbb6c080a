"""The answer of `fleet nodes` as a table."""

from typing import Any, Final

from necroscope.views.fleet.paragraphs import WIDTH, paragraph, table
from necroscope.views.format import MISSING

_MOST: Final = 50
_MOST_LABELS: Final = 4
_SLOW_CLOCK_NS: Final = 1_000_000_000


def nodes_to_text(answer: dict[str, Any], width: int = WIDTH, most: int = _MOST) -> str:
    silent = f", {answer['silent']} silent" if answer["silent"] else ""
    head = f"{answer['count']} nodes{silent}, {answer['from'][:16]} to {answer['to'][:16]} UTC"
    events = ", ".join(f"{kind} {times}" for kind, times in list(answer["events"].items())[:8]) or "none"
    lines = [*paragraph(head, width), *paragraph(f"events: {events}", width), ""]
    labels = answer["labels"][:_MOST_LABELS]
    rows = [_row(node, labels) for node in answer["nodes"][:most]]
    if rows:
        lines += table(("node", *labels, "cores", "last seen", "events", "incidents", "last cause", ""), rows)
    if answer["count"] > most:
        lines.append(f"and {answer['count'] - most} more, see --json or choose with --where")
    return "\n".join(lines)


def _row(node: dict[str, Any], labels: list[str]) -> tuple[object, ...]:
    offset_ns = node["clock_offset_ns"]
    notes = ["silent"] if node["is_silent"] else []
    notes += [f"clock off by {offset_ns / 1e9:.0f} s"] if offset_ns is not None and abs(offset_ns) > _SLOW_CLOCK_NS else []
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
