"""What `necroscope flame` can write: each format with its suffixes, the options it has a place for,
and its writer.
"""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal

from necroscope import __version__
from necroscope.cli.flame_question import Comparison, FlameQuestion
from necroscope.errors import UsageError
from necroscope.interchange.writers.firefox import write_firefox
from necroscope.interchange.writers.folded import write_folded
from necroscope.interchange.writers.otlp import write_otlp
from necroscope.interchange.writers.pprof import write_pprof
from necroscope.interchange.writers.speedscope import write_speedscope
from necroscope.interchange.writers.trace import write_trace
from necroscope.interchange.writers.window import WindowFacts
from necroscope.model.span import Span
from necroscope.model.units import NS_PER_S
from necroscope.stacks.flame_tree import FlameTree
from necroscope.stacks.samples import SampleTables
from necroscope.store.functions import parts, top_functions
from necroscope.store.groups import GroupBy
from necroscope.store.longest_waits import REACH_NS
from necroscope.views.flame.functions import (
    differential_json,
    differential_text,
    functions_json,
    functions_text,
    pair_functions,
)
from necroscope.views.flame.heading import Heading, HeadingWindow
from necroscope.views.flame.heat_svg import heat_map_svg
from necroscope.views.flame.svg import differential_svg, flame_svg
from necroscope.views.web.export import Export, describe, exported_page, state_words
from necroscope.views.web.flame_answer import differential_parts, flame_parts

Notes = list[str]
DEFAULT_TOP: Final = 30
_AROUND_NS: Final = 60 * NS_PER_S
_ANY_GROUP: Final = frozenset(GroupBy)
_TRACKS: Final = frozenset({GroupBy.CORE, GroupBy.THREAD})


@dataclass(frozen=True, slots=True)
class TextStyle:
    """How many functions; `is_wide` lines are cut to no width."""

    top: int | None = None
    as_json: bool = False
    is_wide: bool = True

    @property
    def width(self) -> int | None:
        return None if self.is_wide else shutil.get_terminal_size().columns


@dataclass(frozen=True, slots=True)
class OutputFormat:
    """`write` returns what the answer does not contain, in words. Only what `is_text` may come out
    in a terminal.
    """

    suffixes: tuple[str, ...]
    write: Callable[[FlameQuestion, BinaryIO, TextStyle], Notes]
    is_text: bool = False
    groups: frozenset[GroupBy] = frozenset()
    turns: bool = False
    compares: bool = False


def chosen_format(name: str | None, output: Path | None) -> str:
    """As asked for, else by the longest suffix of the file; text if there is neither."""
    if name is not None:
        return name
    if output is None:
        return "text"
    suffixes = {
        suffix: format_name for format_name, each in OUTPUTS.items() for suffix in each.suffixes
    }
    for suffix in sorted(suffixes, key=len, reverse=True):
        if output.name.lower().endswith(suffix):
            return suffixes[suffix]
    raise UsageError(
        f"the suffix of {str(output)!r} does not name a format",
        f"give --format, or one of {', '.join(suffixes)}",
    )


def check_options(name: str, question: FlameQuestion) -> None:
    """UsageError for an option that the format has no place for."""
    form = OUTPUTS[name]
    if question.is_of_waits and name not in _OF_WAITS:
        raise UsageError(
            f"{name} cannot show waits", f"--waits goes with {', '.join(sorted(_OF_WAITS))}"
        )
    if question.is_of_waits and (
        question.group_by or question.is_turned or question.selection.frames is not None
    ):
        raise UsageError(
            "waits are grouped by program and kind already", "omit --by, --callers and --frames"
        )
    if question.windows.baseline is not None and not form.compares:
        raise UsageError(
            f"{name} cannot show a comparison",
            f"--baseline goes with {_formats(lambda each: each.compares)}",
        )
    if question.is_turned and not form.turns:
        raise UsageError(
            f"{name} cannot be turned to callers",
            f"--callers goes with {_formats(lambda each: each.turns)}",
        )
    if set(question.group_by) - form.groups or (
        form.groups == _TRACKS and len(question.group_by) > 1
    ):
        words = " and ".join(question.group_by)
        hint = (
            f"--by goes with {_formats(lambda each: each.groups == _ANY_GROUP)}; of"
            f" {_formats(lambda each: each.groups == _TRACKS)}"
        )
        raise UsageError(
            f"{name} cannot be grouped by {words}", f"{hint} it chooses the tracks: core or thread"
        )


def _formats(can: Callable[[OutputFormat], bool]) -> str:
    return ", ".join(name for name, each in OUTPUTS.items() if can(each))


def _flame_heading(question: FlameQuestion, tree: FlameTree) -> Heading:
    return question.heading(
        f"Flame graph of {question.node}", HeadingWindow.of(tree), tree.left_out
    )


def _comparison_heading(question: FlameQuestion, found: Comparison) -> Heading:
    title = f"Differential flame graph of {question.node}"
    return question.heading(
        title, HeadingWindow.of(found.window), found.tree.left_out, HeadingWindow.of(found.baseline)
    )


def _write_text(question: FlameQuestion, out: BinaryIO, style: TextStyle) -> Notes:
    """Top functions by self and total; of two windows those whose share changed most."""
    write = _functions if question.windows.baseline is None else _changes
    answer, notes = write(question, style)
    out.write((json.dumps(answer) + "\n" if style.as_json else answer).encode())
    return notes


def _functions(question: FlameQuestion, style: TextStyle) -> tuple[Any, Notes]:
    tree = question.flame()
    heading = _flame_heading(question, tree)
    functions = top_functions(tree, style.top if style.as_json else None)
    groups = parts(tree) if question.group_by or question.is_of_waits else []
    if style.as_json:
        return functions_json(functions, heading, groups), tree.left_out
    top = style.top or DEFAULT_TOP
    text = functions_text(functions, heading, groups=groups, top=top, width=style.width)
    return text, tree.left_out


def _changes(question: FlameQuestion, style: TextStyle) -> tuple[Any, Notes]:
    found = question.comparison()
    heading = _comparison_heading(question, found)
    pairs = pair_functions(top_functions(found.window), top_functions(found.baseline))
    if style.as_json:
        return differential_json(pairs[: style.top], found.tree, heading), found.tree.left_out
    top = style.top or DEFAULT_TOP
    text = differential_text(pairs, found.tree, heading, top=top, width=style.width)
    return text, found.tree.left_out


def _write_svg(question: FlameQuestion, out: BinaryIO, _style: TextStyle) -> Notes:
    if question.windows.baseline is None:
        tree = question.flame()
        heading = _flame_heading(question, tree)
        out.write(flame_svg(tree, heading).encode())
    else:
        found = question.comparison()
        heading = _comparison_heading(question, found)
        out.write(differential_svg(found.tree, heading).encode())
    return list(heading.left_out)


def _write_page(question: FlameQuestion, out: BinaryIO, _style: TextStyle) -> Notes:
    """The time machine in one file, opened at the window; its first graph is of all samples."""
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


def _write_heat_map(question: FlameQuestion, out: BinaryIO, _style: TextStyle) -> Notes:
    heat = question.heat_map()
    to_ns = heat.start_ns + heat.column_ns * heat.weights.shape[1]
    first_ns, last_ns = question.windows.window
    window = HeadingWindow(max(first_ns, heat.start_ns), min(last_ns, to_ns), heat.samples)
    heading = question.heading(f"Heat map of {question.node}", window, heat.left_out)
    out.write(heat_map_svg(heat, heading).encode())
    return heat.left_out


def _write_folded(question: FlameQuestion, out: BinaryIO, _style: TextStyle) -> Notes:
    tree = question.flame()
    write_folded(tree, out)
    return tree.left_out


def _write_samples(
    write: Callable[[FlameQuestion, SampleTables, WindowFacts, BinaryIO], None],
    question: FlameQuestion,
    out: BinaryIO,
    _style: TextStyle,
) -> Notes:
    found = question.samples()
    facts = WindowFacts(question.node, found.from_ns, found.to_ns, left_out=tuple(found.left_out))
    write(question, found.tables, facts, out)
    return found.left_out


def _write_speedscope(
    question: FlameQuestion, tables: SampleTables, facts: WindowFacts, out: BinaryIO
) -> None:
    is_by_thread = question.group_by == (GroupBy.THREAD,)
    write_speedscope(tables, facts, out, by="thread" if is_by_thread else "core")


def _write_firefox(
    question: FlameQuestion, tables: SampleTables, facts: WindowFacts, out: BinaryIO
) -> None:
    events = question.store.rows("events", facts.from_ns, facts.to_ns)
    tracks: dict[tuple[GroupBy, ...], Literal["core", "thread", "both"]] = {
        (): "both",
        (GroupBy.CORE,): "core",
        (GroupBy.THREAD,): "thread",
    }
    write_firefox(tables, facts, out, events=events, by=tracks[question.group_by])


def _write_trace(
    question: FlameQuestion, tables: SampleTables, facts: WindowFacts, out: BinaryIO
) -> None:
    """Of the cores that were asked for; a wait may end after the window that it began in."""
    store, cpus = question.store, question.selection.cpus
    write_trace(
        tables,
        facts,
        out,
        cores=store.rows("cores", facts.from_ns, facts.to_ns, cpus),
        waits=store.rows("waits", facts.from_ns, facts.to_ns + REACH_NS, cpus),
        events=store.rows("events", facts.from_ns, facts.to_ns),
    )


# Those that show a tree and not single samples.
_OF_WAITS: Final = frozenset({"text", "svg", "folded"})
_Graph = partial(OutputFormat, groups=_ANY_GROUP, turns=True)
OUTPUTS: Final[dict[str, OutputFormat]] = {
    "text": OutputFormat((".txt",), _write_text, is_text=True, groups=_ANY_GROUP, compares=True),
    "svg": _Graph((".svg",), _write_svg, compares=True),
    "html": _Graph((".html",), _write_page, compares=True),
    "folded": _Graph((".folded",), _write_folded, is_text=True),
    "speedscope": OutputFormat(
        (".speedscope.json",), partial(_write_samples, _write_speedscope), groups=_TRACKS
    ),
    "pprof": OutputFormat(
        (".pb.gz", ".pprof"), partial(_write_samples, lambda _, *rest: write_pprof(*rest))
    ),
    "otlp": OutputFormat((".otlp",), partial(_write_samples, lambda _, *rest: write_otlp(*rest))),
    "firefox": OutputFormat(
        (".firefox.json",), partial(_write_samples, _write_firefox), groups=_TRACKS
    ),
    "trace": OutputFormat((".trace.json",), partial(_write_samples, _write_trace)),
    "heatmap-svg": OutputFormat((".heatmap.svg",), _write_heat_map),
}
