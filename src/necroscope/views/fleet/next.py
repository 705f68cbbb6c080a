"""The answer of `fleet next` as text."""

from typing import Any, Final

from necroscope.views.fleet.paragraphs import WIDTH, items, names, paragraph, table
from necroscope.views.format import MISSING

_MOST_CARRIERS: Final = 20


def next_to_text(answer: dict[str, Any], width: int = WIDTH) -> str:
    lines = paragraph(answer["summary"], width)
    shown = [each for each in answer["carriers"] if not each["is_hit"]][:_MOST_CARRIERS]
    if shown:
        unit = "" if answer["dose"] is None else answer["dose"]["name"]
        rows = [_row(each) for each in shown]
        lines += [
            "",
            *table(("node", unit, "per day", "days left", "95 %"), rows, frozenset({1, 2, 3})),
        ]
        more = answer["carrier_count"] - len(shown)
        lines += [f"and {more} more that carry it, see --json"] if more else []
    waiting = [each["node"] for each in answer["waiting"]]
    texts = [f"{names(waiting, answer['waiting_count'])}"] if waiting else []
    return "\n".join([*lines, *items("enabled, never started", texts, width)])


def _row(carrier: dict[str, Any]) -> tuple[object, ...]:
    low, high = carrier["days_low"], carrier["days_high"]
    is_between = low is not None and high is not None
    return (
        carrier["node"],
        *(_number(carrier[name]) for name in ("size", "per_day")),
        MISSING if carrier["days"] is None else f"{carrier['days']:.1f}",
        f"{low:.1f} to {high:.1f}" if is_between else MISSING,
    )


def _number(value: float | None) -> str:
    return MISSING if value is None else f"{value:,.0f}"
