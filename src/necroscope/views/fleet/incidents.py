"""The answer of `fleet incidents` as a list, newest first."""

from typing import Any, Final

from necroscope.views.fleet.paragraphs import WIDTH, paragraph, table
from necroscope.views.format import MISSING

_MOST: Final = 30


def incidents_to_text(answer: dict[str, Any], width: int = WIDTH, most: int = _MOST) -> str:
    head = f"{answer['count']} incidents, {answer['from'][:16]} to {answer['to'][:16]} UTC"
    lines = [*paragraph(head, width), ""]
    if not answer["count"]:
        return "\n".join(lines).rstrip()
    causes = [(each["incidents"], each["nodes"], each["cause"]) for each in answer["causes"][:10]]
    lines += [*table(("incidents", "nodes", "cause"), causes, frozenset({0, 1})), ""]
    lines += table(
        ("from", "node", "core", "cause", "sure", "who", "act on"),
        [_row(each) for each in answer["incidents"][:most]],
    )
    if answer["count"] > most:
        lines.append(f"and {answer['count'] - most} more, see --json")
    return "\n".join(lines)


def _row(incident: dict[str, Any]) -> tuple[object, ...]:
    origin = (
        f"{incident['origin_kind']} {incident['origin_name']}"
        if incident["origin_name"]
        else MISSING
    )
    return (
        incident["from"][:19].replace("T", " "),
        incident["node"],
        MISSING if incident["core"] is None else incident["core"],
        incident["cause"],
        f"{incident['confidence']:.0%}",
        incident["culprit_comm"] or MISSING,
        origin,
    )
