"""`necroscope flame` as text or JSON: top functions by self and total; of two windows those whose
share changed most.
"""

import json
from typing import Any, BinaryIO, Final

from necroscope.cli.flame_outputs import Notes, TextStyle, Writer
from necroscope.cli.flame_question import FlameQuestion
from necroscope.store.functions import parts, top_functions
from necroscope.views.flame.functions import (
    differential_json,
    differential_text,
    functions_json,
    functions_text,
    pair_functions,
)

DEFAULT_TOP: Final = 30


def _write_text(question: FlameQuestion, out: BinaryIO, style: TextStyle) -> Notes:
    write = _functions if question.windows.baseline is None else _changes
    answer, notes = write(question, style)
    out.write((json.dumps(answer) + "\n" if style.as_json else answer).encode())
    return notes


def _functions(question: FlameQuestion, style: TextStyle) -> tuple[Any, Notes]:
    tree = question.flame()
    heading = question.flame_heading(tree)
    functions = top_functions(tree, style.top if style.as_json else None)
    groups = parts(tree) if question.group_by or question.is_of_waits else []
    if style.as_json:
        return functions_json(functions, heading, groups), tree.left_out
    top = style.top or DEFAULT_TOP
    text = functions_text(functions, heading, groups=groups, top=top, width=style.width)
    return text, tree.left_out


def _changes(question: FlameQuestion, style: TextStyle) -> tuple[Any, Notes]:
    found = question.comparison()
    heading = question.comparison_heading(found)
    pairs = pair_functions(top_functions(found.window), top_functions(found.baseline))
    if style.as_json:
        return differential_json(pairs[: style.top], found.tree, heading), found.tree.left_out
    top = style.top or DEFAULT_TOP
    text = differential_text(pairs, found.tree, heading, top=top, width=style.width)
    return text, found.tree.left_out


WRITERS: Final[dict[str, Writer]] = {"text": _write_text}
