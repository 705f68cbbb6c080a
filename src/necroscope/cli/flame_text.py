"""Top functions of `necroscope flame`, as a table and as JSON."""

import json
import shutil
from typing import BinaryIO, Final

from necroscope.cli.flame_formats import Notes, TextStyle
from necroscope.cli.flame_headings import comparison_heading, flame_heading
from necroscope.cli.flame_question import Question
from necroscope.store.functions import parts, top_functions
from necroscope.views.flame.functions import (
    differential_json,
    differential_text,
    functions_json,
    functions_text,
    paired,
)

DEFAULT_TOP: Final = 30


def _write(question: Question, out: BinaryIO, style: TextStyle) -> Notes:
    """Self and total; of two windows those whose share changed most."""
    answer, notes = (_functions if question.windows.baseline is None else _differential)(
        style, question
    )
    out.write(answer.encode())
    return notes


def _functions(style: TextStyle, question: Question) -> tuple[str, Notes]:
    tree = question.flame()
    heading = flame_heading(question, tree)
    functions = top_functions(tree, style.top if style.as_json else None)
    groups = parts(tree) if question.group_by else []
    if style.as_json:
        return json.dumps(functions_json(functions, heading, groups)) + "\n", tree.left_out
    text = functions_text(
        functions, heading, groups=groups, top=style.top or DEFAULT_TOP, width=_width(style)
    )
    return text, tree.left_out


def _differential(style: TextStyle, question: Question) -> tuple[str, Notes]:
    found = question.comparison()
    heading = comparison_heading(question, found)
    pairs = paired(top_functions(found.window), top_functions(found.baseline))
    if style.as_json:
        return json.dumps(
            differential_json(pairs[: style.top], found.tree, heading)
        ) + "\n", found.tree.left_out
    text = differential_text(
        pairs, found.tree, heading, top=style.top or DEFAULT_TOP, width=_width(style)
    )
    return text, found.tree.left_out


def _width(style: TextStyle) -> int | None:
    return None if style.is_wide else shutil.get_terminal_size().columns


WRITERS: Final = {"text": _write}
