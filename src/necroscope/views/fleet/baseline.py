"""The answer of `fleet baseline` as text."""

from typing import Any, Final

from necroscope.views.fleet.paragraphs import WIDTH, names, paragraph, table
from necroscope.views.format import MISSING

_MOST: Final = 30


def baseline_to_text(answer: dict[str, Any], width: int = WIDTH) -> str:
    lines = paragraph(answer["summary"], width)
    unasked = answer["unasked"][:_MOST]
    if unasked:
        rows = [
            (
                "never succeeds" if each["never_succeeds"] else "",
                f"{each['kind']} {each['name']}",
                each["reason"],
                names(each["node_names"], each["nodes"], 3),
            )
            for each in unasked
        ]
        lines += ["", "no one asked for", *table(("", "what", "why", "nodes"), rows, indent="  ")]
        lines += _more(answer["unasked_count"], len(unasked))
    units = answer["units"][:_MOST]
    if units:
        head = ("unit", "nodes", "runs", "success", "95 %", "what came of it")
        lines += ["", "units", *table(head, map(_unit, units), frozenset({1, 2, 3}), "  ")]
        lines += _more(answer["unit_count"], len(units))
    return "\n".join(lines)


def _unit(unit: dict[str, Any]) -> tuple[object, ...]:
    outcomes = ", ".join(f"{outcome} {count}" for outcome, count in unit["outcomes"].items())
    if not unit["runs"]:
        return unit["unit"], unit["nodes"], 0, MISSING, MISSING, outcomes
    between = f"{unit['low']:.0%} to {unit['high']:.0%}"
    return unit["unit"], unit["nodes"], unit["runs"], f"{unit['rate']:.0%}", between, outcomes


def _more(count: int, shown: int) -> list[str]:
    return [f"  and {count - shown} more, see --json"] if count > shown else []
