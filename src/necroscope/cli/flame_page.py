"""`necroscope flame` as HTML: the time machine in one file, opened at the window; its first graph
is of all samples.
"""

from typing import BinaryIO, Final

from necroscope import __version__
from necroscope.cli.flame_outputs import Notes, TextStyle, Writer
from necroscope.cli.flame_question import FlameQuestion
from necroscope.model.span import Span
from necroscope.model.units import NS_PER_S
from necroscope.views.web.export import Export, describe, exported_page, state_words
from necroscope.views.web.flame_answer import differential_parts, flame_parts

_AROUND_NS: Final = 60 * NS_PER_S


def _write_page(question: FlameQuestion, out: BinaryIO, _style: TextStyle) -> Notes:
    window, baseline = question.windows.window, question.windows.baseline
    if baseline is None:
        tree = question.flame()
        flame, left_out = flame_parts(tree), tree.left_out
    else:
        found = question.comparison()
        flame = differential_parts(found.tree, found.window, found.baseline)
        left_out = found.tree.left_out
    first_ns, last_ns = question.span
    spans = [
        Span(max(start, first_ns), min(end, last_ns + 1))
        for start, end in (window, baseline or window)
    ]
    view = Span(
        max(first_ns, min(start for start, _ in spans) - _AROUND_NS),
        min(last_ns + 1, max(end for _, end in spans) + _AROUND_NS),
    )
    words = question.page_words()
    state = state_words(view, spans[0], spans[1] if baseline else None, **words)
    notes = [f"this file holds only samples of {question.choice}"] if question.choice else []
    export = Export(view, spans, state, None, question.selection, flame, notes)
    out.write(exported_page(question.store, describe(question.store, __version__), export).encode())
    return left_out


WRITERS: Final[dict[str, Writer]] = {"html": _write_page}
