"""A flame graph as one SVG file: readable as it is, and with zoom, search and keyboard where a
browser opens it.

After the idea and the manners of Brendan Gregg's flamegraph.pl: width is samples, order is by name,
callers below callees.
"""

import json
from dataclasses import replace
from html import escape
from importlib.resources import files
from itertools import chain, repeat
from typing import Final

import numpy as np

from necroscope.stacks.differential import DifferentialTree, PerWhat
from necroscope.stacks.flame_tree import FlameTree
from necroscope.views.flame.box_text import cut_line, explanations, labels, legend
from necroscope.views.flame.boxes import BoxChange, Boxes, Name, boxes_of, differential_boxes
from necroscope.views.flame.heading import Heading
from necroscope.views.flame.palette import HUES, change_colours, kind_colours, shade_of, strengths
from necroscope.views.format import cells, count, fit

WIDTH: Final = 1180
_MARGIN: Final = 10
_ROW: Final = 17
_LINE: Final = 16
_CHARACTER: Final = 6.63
_PADDING: Final = 6
# A label of fewer characters says nothing.
_SHORTEST: Final = 3
_NARROWEST: Final = 0.1
# A hatch in a box narrower than this would only darken it.
_HATCHED: Final = 4
# Some viewers give up on pictures higher than 2**15 pixels.
_DEEPEST: Final = 1500


def flame_svg(tree: FlameTree, heading: Heading, *, width: int = WIDTH) -> str:
    return _svg(
        boxes_of(tree, _NARROWEST / (width - 2 * _MARGIN), _DEEPEST),
        heading,
        PerWhat.SAMPLES,
        width,
    )


def differential_svg(tree: DifferentialTree, heading: Heading, *, width: int = WIDTH) -> str:
    return _svg(
        differential_boxes(tree, _NARROWEST / (width - 2 * _MARGIN), _DEEPEST),
        heading,
        tree.per,
        width,
    )


def _svg(boxes: Boxes, heading: Heading, per: PerWhat, width: int) -> str:
    lines = [*heading.lines(), *filter(None, [cut_line(boxes.cut, heading.window.samples)])]
    top = 34 + _LINE * len(lines) + 30
    bottom = top + (int(boxes.depth.max()) + 1) * _ROW
    height = bottom + 28
    texts, label = labels(boxes)
    rows = _rows(boxes, [texts[each] for each in label], per, bottom, width)
    numbers = {
        "left": boxes.left.tolist(),
        "width": boxes.width.tolist(),
        "parent": boxes.parent.tolist(),
    }
    numbers |= {"labels": texts, "label": label}
    if boxes.baseline is not None:  # else they are the widths
        numbers["samples"] = boxes.window.total.tolist()
    drawing = {
        "ruler": boxes.ruler,
        "margin": _MARGIN,
        "pixels": width - 2 * _MARGIN,
        "character": _CHARACTER,
    }
    return f"""<?xml version="1.0" encoding="UTF-8" standalone="no"?>
<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" tabindex="0">
<title>{_text(heading.headline)}</title>
<style><![CDATA[
{asset("svg.css")}{_colour_rules(boxes)}]]></style>
<defs>{_HATCHES}</defs>
<rect class="page" width="{width}" height="{height}"/>
<g id="boxes">
{rows}</g>
<g id="head">
<rect class="page" width="{width}" height="{top - 4}"/>
<text class="title" x="{_MARGIN}" y="24">{_text(heading.headline)}</text>
{_head(lines)}
{_legend(boxes, 34 + _LINE * len(lines) + 14)}
</g>
<rect id="backing" class="page" x="0" y="{height - 24}" width="{width}" height="24"/>
<text id="status" x="{_MARGIN}" y="{height - 9}">{_text(f"{count(len(boxes) - 1)} frames drawn")}</text>
<script type="application/json" id="numbers"><![CDATA[{embedded_json(numbers | drawing)}]]></script>
<script><![CDATA[
{asset("svg.js")}]]></script>
</svg>
"""


# New and vanished are hatched as well as coloured, and their labels carry a sign.
_HATCHES: Final = "".join(
    f'<pattern id="{name}" width="6" height="6" patternUnits="userSpaceOnUse"'
    f' patternTransform="rotate({angle})"><rect width="2" height="6" class="hatch"/></pattern>'
    for name, angle in (("rising", 45), ("falling", -45))
)


def _head(lines: list[str]) -> str:
    return "\n".join(
        f'<text class="head" x="{_MARGIN}" y="{44 + _LINE * row}">{_text(line)}</text>'
        for row, line in enumerate(lines)
    )


def _legend(boxes: Boxes, y: int) -> str:
    parts, x = [], _MARGIN
    for css_class, text in legend(boxes):
        parts.append(
            f'<g class="{css_class}"><rect x="{x}" y="{y - 10}" width="14" height="12"/></g>'
        )
        parts.append(f'<text class="head" x="{x + 19}" y="{y}">{_text(text)}</text>')
        x += 19 + round(_CHARACTER * cells(text)) + 18
    return "\n".join(parts)


def _rows(boxes: Boxes, texts: list[str], per: PerWhat, bottom: int, width: int) -> str:
    """Most boxes are narrow: these have no label, few different sizes, and are put together by
    loops of C.
    """
    scale = (width - 2 * _MARGIN) / boxes.ruler
    lefts, widths = (boxes.left * scale + _MARGIN).tolist(), boxes.width * scale
    names, samples = explanations(_escape(boxes), per)
    kinds = list(zip(box_classes(boxes), names, strict=True))
    heads = {kind: '<g class="{}"><title>{}\n'.format(*kind) for kind in set(kinds)}
    sizes = list(zip((bottom - (boxes.depth + 1) * _ROW).tolist(), widths.tolist(), strict=True))
    narrow = {size: f"{_size(*size)}</g>\n" for size in set(sizes)}
    ends = [narrow[size] for size in sizes]
    is_hatched = boxes.change >= BoxChange.NEW
    is_labelled = widths >= _CHARACTER * _SHORTEST + _PADDING
    for box in np.flatnonzero(is_labelled | (is_hatched & (widths >= _HATCHED))).tolist():
        left, (top, pixels) = lefts[box], sizes[box]
        size = _size(top, pixels)
        over = f'<rect class="over" x="{left:.2f}{size}' if is_hatched[box] else ""
        text = _text(fit(texts[box], room).rstrip()) if (room := _room(pixels)) >= _SHORTEST else ""
        label = f'<text x="{left + 3:.2f}" y="{top + 12}">{text}</text>' if text else ""
        ends[box] = f"{size}{over}{label}</g>\n"
    columns = (
        [heads[kind] for kind in kinds],
        samples,
        repeat('</title><rect x="'),
        map("%.2f".__mod__, lefts),
        ends,
    )
    return "".join(chain.from_iterable(zip(*columns, strict=False)))


def _size(top: int, pixels: float) -> str:
    return f'" y="{top}" width="{max(pixels, 0.1):.2f}" height="{_ROW - 1}"/>'


def _room(pixels: float) -> int:
    """Characters of a label that fit."""
    return int((pixels - _PADDING) / _CHARACTER)


def _escape(boxes: Boxes) -> Boxes:
    """There are far fewer names than boxes, and all else in an explanation is ours."""
    return replace(
        boxes,
        names=[
            Name(_text(name.text), _text(name.module), _text(name.kind)) for name in boxes.names
        ],
    )


def box_classes(boxes: Boxes) -> list[str]:
    """`kernel s3`: the kind or the change, and the shade."""
    if boxes.baseline is None:
        kinds = [
            f"{name.kind if name.kind in HUES else 'other'} s{shade_of(name.text)}"
            for name in boxes.names
        ]
        return [kinds[name] for name in boxes.name.tolist()]
    shades = strengths(boxes.window.share - boxes.baseline.share)
    return [
        f"{BoxChange(c).name.lower()} s{s}"
        for c, s in zip(boxes.change.tolist(), shades, strict=True)
    ]


def _colour_rules(boxes: Boxes) -> str:
    colours = kind_colours() if boxes.baseline is None else change_colours()
    return "".join(
        f".{name}.s{shade} rect{{fill:{colour}}}\n"
        for name, row in colours.items()
        for shade, colour in enumerate(row)
    )


def _text(text: str) -> str:
    return escape(text)


def asset(name: str) -> str:
    return files("necroscope.views.flame").joinpath(name).read_text("utf-8")


def embedded_json(value: object) -> str:
    """Without `<`, `>` and `&` no text in it can end a script element or a CDATA section; all else
    is ASCII anyway.
    """
    return (
        json.dumps(value, separators=(",", ":"))
        .replace("<", "\\u003c")
        .replace(">", "\\u003e")
        .replace("&", "\\u0026")
    )
