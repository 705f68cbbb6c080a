"""What `necroscope flame` can write: each format with its suffixes, the options it has a place for, and its writer."""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final

from necroscope.cli.flame_question import Comparison, Question
from necroscope.errors import UsageError
from necroscope.interchange.writers.firefox import write_firefox
from necroscope.interchange.writers.folded import write_folded
from necroscope.interchange.writers.formats import FORMATS
from necroscope.interchange.writers.otlp import write_otlp
from necroscope.interchange.writers.pprof import write_pprof
from necroscope.interchange.writers.speedscope import write_speedscope
from necroscope.interchange.writers.window import SampleTables, WindowFacts
from necroscope.store.flame import FlameTree, GroupBy
from necroscope.store.functions import parts, top_functions
from necroscope.store.heatmap import HeatMap
from necroscope.views.flame.functions import differential_json, differential_text, functions_json, functions_text, paired
from necroscope.views.flame.heading import Heading, Window
from necroscope.views.flame.heat_png import heat_map_png
from necroscope.views.flame.heat_svg import heat_map_svg
from necroscope.views.flame.html import differential_html, flame_html
from necroscope.views.flame.svg import differential_svg, flame_svg

Notes = list[str]
_ANY_GROUP: Final = frozenset(GroupBy)
_TRACKS: Final = frozenset({GroupBy.CORE, GroupBy.THREAD})


@dataclass(frozen=True, slots=True)
class OutputFormat:
    """`write` returns what the answer does not contain, in words. Only what `is_text` may come out in a terminal."""

    suffixes: tuple[str, ...]
    write: Callable[[Question, BinaryIO], Notes]
    is_text: bool = False
    groups: frozenset[GroupBy] = frozenset()
    turns: bool = False
    compares: bool = False


@dataclass(frozen=True, slots=True)
class TextStyle:
    """How many functions; `is_wide` lines are cut to no width."""

    top: int | None = None
    as_json: bool = False
    is_wide: bool = True


DEFAULT_TOP: Final = 30


def flame_heading(question: Question, tree: FlameTree) -> Heading:
    return question.heading(f"Flame graph of {question.node}", _window(tree), tree.left_out)


def comparison_heading(question: Question, found: Comparison) -> Heading:
    title = f"Differential flame graph of {question.node}"
    return question.heading(title, _window(found.window), found.tree.left_out, _window(found.baseline))


def _window(tree: FlameTree) -> Window:
    return Window(tree.from_ns, tree.to_ns, tree.samples)


def _write_picture(
    draw: Callable[[FlameTree, Heading], str], compare: Callable[[Any, Heading], str], question: Question, out: BinaryIO
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


def _write_folded(question: Question, out: BinaryIO) -> Notes:
    tree = question.flame()
    write_folded(tree, out)
    return tree.left_out


def _write_samples(
    write: Callable[[Question, SampleTables, WindowFacts, BinaryIO], None], question: Question, out: BinaryIO
) -> Notes:
    found = question.samples()
    facts = WindowFacts(question.node, found.from_ns, found.to_ns, left_out=tuple(found.left_out))
    write(question, found.tables, facts, out)
    return found.left_out


def _speedscope(question: Question, tables: SampleTables, facts: WindowFacts, out: BinaryIO) -> None:
    write_speedscope(tables, facts, out, by="thread" if question.group_by == (GroupBy.THREAD,) else "core")


def _firefox(question: Question, tables: SampleTables, facts: WindowFacts, out: BinaryIO) -> None:
    events = question.store.rows("events", facts.from_ns, facts.to_ns)
    if question.group_by == (GroupBy.CORE,):
        write_firefox(tables, facts, out, events=events, by="core")
    else:
        write_firefox(tables, facts, out, events=events, by="thread" if question.group_by else "both")


def _write_heat_map(draw: Callable[[HeatMap, Heading], str | bytes], question: Question, out: BinaryIO) -> Notes:
    heat = question.heat_map()
    to_ns = heat.start_ns + heat.column_ns * heat.weights.shape[1]
    first_ns, last_ns = max(question.windows.window[0], heat.start_ns), min(question.windows.window[1], to_ns)
    heading = question.heading(f"Heat map of {question.node}", Window(first_ns, last_ns, heat.samples), heat.left_out)
    picture = draw(heat, heading)
    out.write(picture.encode() if isinstance(picture, str) else picture)
    return heat.left_out


def write_text(style: TextStyle, question: Question, out: BinaryIO) -> Notes:
    """Top functions, self and total; of two windows those whose share changed most."""
    if question.windows.baseline is None:
        answer, notes = _functions(style, question)
    else:
        answer, notes = _differential(style, question)
    out.write(answer.encode())
    return notes


def _functions(style: TextStyle, question: Question) -> tuple[str, Notes]:
    tree = question.flame()
    heading = flame_heading(question, tree)
    functions = top_functions(tree, style.top if style.as_json else None)
    groups = parts(tree) if question.group_by else []
    if style.as_json:
        return json.dumps(functions_json(functions, heading, groups)) + "\n", tree.left_out
    text = functions_text(functions, heading, groups=groups, top=style.top or DEFAULT_TOP, width=_width(style))
    return text, tree.left_out


def _differential(style: TextStyle, question: Question) -> tuple[str, Notes]:
    found = question.comparison()
    heading = comparison_heading(question, found)
    pairs = paired(top_functions(found.window), top_functions(found.baseline))
    if style.as_json:
        return json.dumps(differential_json(pairs[: style.top], found.tree, heading)) + "\n", found.tree.left_out
    text = differential_text(pairs, found.tree, heading, top=style.top or DEFAULT_TOP, width=_width(style))
    return text, found.tree.left_out


def _width(style: TextStyle) -> int | None:
    return None if style.is_wide else shutil.get_terminal_size().columns


OUTPUTS: Final[dict[str, OutputFormat]] = {
    "text": OutputFormat((".txt",), partial(write_text, TextStyle()), is_text=True, groups=_ANY_GROUP, compares=True),
    "svg": OutputFormat(
        (".svg",), partial(_write_picture, flame_svg, differential_svg), groups=_ANY_GROUP, turns=True, compares=True
    ),
    "html": OutputFormat(
        (".html",), partial(_write_picture, flame_html, differential_html), groups=_ANY_GROUP, turns=True, compares=True
    ),
    "folded": OutputFormat((FORMATS["folded"].suffix,), _write_folded, is_text=True, groups=_ANY_GROUP, turns=True),
    "speedscope": OutputFormat((FORMATS["speedscope"].suffix,), partial(_write_samples, _speedscope), groups=_TRACKS),
    "pprof": OutputFormat((FORMATS["pprof"].suffix, ".pprof"), partial(_write_samples, lambda _, *rest: write_pprof(*rest))),
    "otlp": OutputFormat((FORMATS["otlp"].suffix,), partial(_write_samples, lambda _, *rest: write_otlp(*rest))),
    "firefox": OutputFormat((FORMATS["firefox"].suffix,), partial(_write_samples, _firefox), groups=_TRACKS),
    "heatmap-svg": OutputFormat((".heatmap.svg",), partial(_write_heat_map, heat_map_svg)),
    "heatmap-png": OutputFormat((".png",), partial(_write_heat_map, heat_map_png)),
}


def chosen_format(name: str | None, output: Path | None) -> str:
    """As asked for, else by the longest suffix of the file; text if there is neither."""
    if name is not None:
        return name
    if output is None:
        return "text"
    suffixes = {suffix: format_name for format_name, each in OUTPUTS.items() for suffix in each.suffixes}
    for suffix in sorted(suffixes, key=len, reverse=True):
        if output.name.lower().endswith(suffix):
            return suffixes[suffix]
    raise UsageError(f"the suffix of {str(output)!r} tells no format", f"give --format, or one of {', '.join(suffixes)}")


def check_options(name: str, question: Question) -> None:
    """UsageError for an option that the format has no place for."""
    form = OUTPUTS[name]
    if question.windows.baseline is not None and not form.compares:
        raise UsageError(f"{name} cannot show a comparison", f"--baseline goes with {_those(lambda each: each.compares)}")
    if question.is_turned and not form.turns:
        raise UsageError(f"{name} cannot be turned to callers", f"--callers goes with {_those(lambda each: each.turns)}")
    if set(question.group_by) - form.groups or (form.groups == _TRACKS and len(question.group_by) > 1):
        words = " and ".join(question.group_by)
        hint = (
            f"--by goes with {_those(lambda each: each.groups == _ANY_GROUP)}; of {_those(lambda each: each.groups == _TRACKS)}"
        )
        raise UsageError(f"{name} cannot be grouped by {words}", f"{hint} it chooses the tracks: core or thread")


def _those(can: Callable[[OutputFormat], bool]) -> str:
    return ", ".join(name for name, each in OUTPUTS.items() if can(each))
