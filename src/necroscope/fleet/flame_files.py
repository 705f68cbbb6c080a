"""The flame graph of a fleet as a file: folded stacks, SVG or a page, by the writers that draw a
recording's.
"""

import json
from collections.abc import Iterable
from typing import Any, BinaryIO, Final

import numpy as np

from necroscope.errors import UsageError
from necroscope.fleet.questions.flame import LEFT_OUT
from necroscope.interchange.writers.folded import write_folded
from necroscope.model.frame import Frame
from necroscope.model.span import Span
from necroscope.model.units import parse_moment_ns
from necroscope.stacks.differential import compare
from necroscope.stacks.flame_tree import FlameTree
from necroscope.stacks.frames import GROUP, FrameNumbers
from necroscope.stacks.merge import merge, tree_of
from necroscope.store.functions import top_functions
from necroscope.views.flame.functions import differential_text, functions_text, pair_functions
from necroscope.views.flame.heading import Heading, HeadingWindow
from necroscope.views.flame.svg import differential_svg, flame_svg
from necroscope.views.web.export import exported_flame

FORMATS: Final = ("text", "folded", "svg", "html", "json")
_TOP: Final = 30


def write_flame(
    answer: dict[str, Any], form: str, out: BinaryIO, *, width: int | None = None
) -> None:
    """Of the JSON of a `FlameAnswer`."""
    if form == "json":
        out.write(json.dumps(answer).encode() + b"\n")
        return
    window, baseline = trees(answer)
    if form == "folded":
        if baseline is not None:
            raise UsageError(
                "folded stacks cannot show a comparison", "--baseline goes with text, svg and html"
            )
        write_folded(window, out)
        return
    heading = _heading(answer, window, baseline)
    if form == "html":
        out.write(exported_flame(answer, heading.headline).encode())
        return
    out.write(
        (
            _alone(window, heading, form, width)
            if baseline is None
            else _render_comparison(window, baseline, heading, form, width)
        ).encode()
    )


def _alone(tree: FlameTree, heading: Heading, form: str, width: int | None) -> str:
    if form == "text":
        return functions_text(top_functions(tree), heading, top=_TOP, width=width)
    return flame_svg(tree, heading)


def _render_comparison(
    window: FlameTree, baseline: FlameTree, heading: Heading, form: str, width: int | None
) -> str:
    found = compare(window, baseline)
    if form == "text":
        pairs = pair_functions(top_functions(window), top_functions(baseline))
        return differential_text(pairs, found, heading, top=_TOP, width=width)
    return differential_svg(found, heading)


def _heading(answer: dict[str, Any], window: FlameTree, baseline: FlameTree | None) -> Heading:
    group = answer["where"] or "all nodes"
    title = (
        f"Flame graph of {group}" if baseline is None else f"{group} against {answer['baseline']}"
    )
    span = Span(parse_moment_ns(answer["from"], 0), parse_moment_ns(answer["to"], 0))
    filters = (
        (f"{answer['nodes']} nodes",)
        if baseline is None
        else (f"{answer['nodes']} against {answer['baseline_nodes']} nodes",)
    )
    other = None if baseline is None else HeadingWindow(*span, baseline.samples)
    return Heading(
        title,
        group,
        HeadingWindow(*span, window.samples),
        "all cores",
        filters,
        other,
        tuple(answer["left_out"]),
    )


_KERNEL_MARK: Final = "_[k]"


def trees(answer: dict[str, Any]) -> tuple[FlameTree, FlameTree | None]:
    """Of the JSON of a `FlameAnswer`: the group's, and the baseline's where there is one. The
    outermost frame is the process.
    """
    window = _tree(answer, [(comm, path, samples) for comm, path, samples, _ in answer["stacks"]])
    if answer["baseline"] is None:
        return window, None
    return window, _tree(
        answer, [(comm, path, baseline) for comm, path, _, baseline in answer["stacks"]]
    )


def _tree(answer: dict[str, Any], stacks: Iterable[tuple[str, str, int]]) -> FlameTree:
    numbering = FrameNumbers()
    known = [
        (numbering.of(_frames(comm, path)).tolist(), weight)
        for comm, path, weight in stacks
        if weight
    ]
    interned, ends = tree_of(path for path, _ in known)
    tree, (rows,) = merge(interned)
    weights = np.array([weight for _, weight in known], np.int64)
    span = Span(parse_moment_ns(answer["from"], 0), parse_moment_ns(answer["to"], 0))
    return FlameTree.of(tree, (rows[ends], weights), numbering.frames, span, answer["left_out"])


def _frames(comm: str, path: str) -> list[Frame]:
    """What the nodes left out stands alone: its process is unknown."""
    if path == LEFT_OUT:
        return [Frame(LEFT_OUT, "", GROUP, None, None)]
    return [Frame(comm or "[unknown]", "", GROUP, None, None), *map(_frame, path.split(";"))]


def _frame(name: str) -> Frame:
    if name.endswith(_KERNEL_MARK):
        return Frame(name.removesuffix(_KERNEL_MARK), "", "kernel", None, None)
    return Frame(name, "", "user", None, None)
