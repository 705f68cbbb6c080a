"""Flame graphs of `necroscope flame` as SVG and as a page."""

from collections.abc import Callable
from functools import partial
from typing import Any, BinaryIO, Final

from necroscope.cli.flame_formats import Notes, TextStyle
from necroscope.cli.flame_headings import comparison_heading, flame_heading
from necroscope.cli.flame_question import Question
from necroscope.stacks.flame_tree import FlameTree
from necroscope.views.flame.heading import Heading
from necroscope.views.flame.html import differential_html, flame_html
from necroscope.views.flame.svg import differential_svg, flame_svg


def _write(
    draw: Callable[[FlameTree, Heading], str],
    compare: Callable[[Any, Heading], str],
    question: Question,
    out: BinaryIO,
    _style: TextStyle,
) -> Notes:
    if question.windows.baseline is None:
        tree = question.flame()
        heading = flame_heading(question, tree)
        out.write(draw(tree, heading).encode())
    else:
        found = question.comparison()
        heading = comparison_heading(question, found)
        out.write(compare(found.tree, heading).encode())
    return list(heading.left_out)


WRITERS: Final = {
    "svg": partial(_write, flame_svg, differential_svg),
    "html": partial(_write, flame_html, differential_html),
}
