"""Headings, wrapped sentences, lists and tables for a terminal; every name from a machine is
escaped.
"""

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from necroscope.views.format import cells, fit, fit_right, literal

WIDTH: Final = 100
_LINE_LIMIT: Final = 2000
_WIDEST: Final = 48


def plain(text: object, limit: int = _LINE_LIMIT) -> str:
    return literal(str(text), limit)


def paragraph(text: str, width: int, indent: str = "") -> list[str]:
    return textwrap.wrap(
        plain(text), max(width, 40), initial_indent=indent, subsequent_indent=indent
    ) or [""]


def items(title: str, texts: Iterable[str], width: int, most: int = 8) -> Iterator[str]:
    """A heading and its points; what is not shown is counted."""
    cleaned = [plain(text) for text in texts]
    if not cleaned:
        return
    yield from ("", title)
    for text in cleaned[:most]:
        yield from textwrap.wrap(
            text, max(width, 40), initial_indent="  - ", subsequent_indent="    "
        )
    if len(cleaned) > most:
        yield f"    and {len(cleaned) - most} more, see --json"


def table(
    head: Sequence[str],
    rows: Iterable[Sequence[object]],
    numbers: frozenset[int] = frozenset(),
    indent: str = "",
) -> list[str]:
    """Columns as wide as they need; those with `numbers` are set to the right."""
    last = len(head) - 1
    lines = [
        [plain(value, _WIDEST if place < last else _LINE_LIMIT) for place, value in enumerate(row)]
        for row in (head, *rows)
    ]
    widths = [max(cells(line[column]) for line in lines) for column in range(len(head))]
    return [
        (
            indent
            + "  ".join(
                (fit_right if column in numbers else fit)(text, widths[column])
                for column, text in enumerate(line)
            )
        ).rstrip()
        for line in lines
    ]


def left_out(answer: dict[str, Any]) -> list[str]:
    """Facts that were not asked about, and why."""
    return [
        f"{each['facts']} {'fact' if each['facts'] == 1 else 'facts'}: {each['reason']}"
        for each in answer["left_out"]
    ]


def names(nodes: Sequence[str], count: int, most: int = 12) -> str:
    """The first of `count` nodes by name; the rest is counted."""
    listed = ", ".join(plain(node, 80) for node in nodes[:most])
    return listed + (f" and {count - most} more" if count > most else "")
