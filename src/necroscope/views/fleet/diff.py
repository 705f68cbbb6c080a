"""The answer of `fleet diff` as a table: the rarest difference first."""

from typing import Any, Final

from necroscope.views.fleet.paragraphs import WIDTH, items, left_out, paragraph, table

_MOST: Final = 40
# Of groups: what differs more often by chance is told in JSON only.
_RARE: Final = 0.05
_ABSENT: Final = "(not there)"


def diff_to_text(answer: dict[str, Any], width: int = WIDTH, most: int = _MOST) -> str:
    a, b = answer["a"], answer["b"]
    head = (
        f"A: {a['name']} ({a['nodes']} nodes), B: {b['name']} ({b['nodes']} nodes), of"
        f" {answer['nodes']} nodes"
    )
    count = answer["count"]
    told = [
        each
        for each in answer["differences"]
        if a["nodes"] + b["nodes"] == 2 or each["rarity"] <= _RARE
    ]
    lines = [
        *paragraph(head, width),
        f"{count} facts differ, {answer['same']} are the same; the rarest difference first",
        "",
    ]
    if told:
        rows = [
            (
                f"{each['rarity']:.1e}",
                f"{each['kind']} {each['name']}",
                _values(each["a"]),
                _values(each["b"]),
            )
            for each in told[:most]
        ]
        lines += table(("rarity", "fact", "A", "B"), rows, frozenset({0}))
    if count > len(told[:most]):
        lines.append(
            f"and {count - len(told[:most])} more, most of them no rarer than chance would have it:"
            " see --json"
        )
    return "\n".join([*lines, *items("left out (shown with --all)", left_out(answer), width)])


def _values(values: list[dict[str, Any]]) -> str:
    """`enabled 97 %, disabled 3 %`; one value stands alone."""
    if len(values) == 1:
        return _told(values[0]["value"])
    return ", ".join(f"{_told(each['value'])} {each['share']:.0%}" for each in values[:3])


def _told(value: str | None) -> str:
    return _ABSENT if value is None else value
