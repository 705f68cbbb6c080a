"""A flame graph as one HTML page on a canvas, for graphs too large for an SVG: zoom, search,
keyboard, dark and light.

The page may load nothing and run nothing but its own script, which its policy names by hash; names
reach it as JSON only.
"""

from base64 import b64encode
from hashlib import sha256
from html import escape
from typing import Any, Final

from necroscope.stacks.differential import DifferentialTree, PerWhat
from necroscope.stacks.flame_tree import FlameTree
from necroscope.views.flame.box_text import cut_line, explanations, legend
from necroscope.views.flame.boxes import Boxes, Change, boxes_of, differential_boxes
from necroscope.views.flame.embedded import asset, embedded_json
from necroscope.views.flame.heading import Heading
from necroscope.views.flame.palette import (
    HUES,
    MARKS,
    SIGNS,
    change_colours,
    kind_colours,
    shade_of,
    strengths,
)

_MOST_BOXES: Final = 200_000
_DEEPEST: Final = 20_000


def flame_html(tree: FlameTree, heading: Heading) -> str:
    return _page(boxes_of(tree, _least_share(len(tree.parent)), _DEEPEST), heading, PerWhat.SAMPLES)


def differential_html(tree: DifferentialTree, heading: Heading) -> str:
    return _page(
        differential_boxes(tree, _least_share(len(tree.parent)), _DEEPEST), heading, tree.per
    )


def _least_share(boxes: int) -> float:
    """Zoom shows the narrowest as long as the page stays quick."""
    return 0.0 if boxes <= _MOST_BOXES else 1 / _MOST_BOXES


def _page(boxes: Boxes, heading: Heading, per: PerWhat) -> str:
    style, script = asset("page.css"), asset("page.js")
    lines = [*heading.lines(), *filter(None, [cut_line(boxes.cut, heading.window.samples)])]
    head = "\n".join(f"<p>{escape(line)}</p>" for line in lines)
    swatches = "".join(
        f'<span data-colour="{escape(name)}">{escape(text)}</span>' for name, text in legend(boxes)
    )
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; base-uri"
        " 'none'; form-action 'none'"
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(heading.headline)}</title>
<style>{style}</style>
</head>
<body>
<header>
<div class="bar"><h1>{escape(heading.headline)}</h1>
<input id="search" type="search" placeholder="search, a regular expression ( / )" aria-label="search frames">
<button id="reset">reset (Esc)</button><button id="turn">turn over (i)</button><button id="theme">dark / light (t)</button></div>
{head}
<div id="legend">{swatches}</div>
</header>
<main id="main" tabindex="0" aria-label="flame graph: arrow keys move, Enter zooms, Backspace goes out">
<canvas id="canvas"></canvas><div id="spacer"></div></main>
<footer id="status" aria-live="polite"></footer>
<div id="tip" hidden></div>
<script type="application/json" id="graph">{embedded_json(_graph(boxes, per))}</script>
<script>{script}</script>
</body>
</html>
"""


def _graph(boxes: Boxes, per: PerWhat) -> dict[str, Any]:
    signs = [SIGNS[change] for change in Change] if boxes.baseline is not None else [""]
    graph: dict[str, Any] = {
        "parent": boxes.parent.tolist(),
        "name": boxes.name.tolist(),
        "depth": boxes.depth.tolist(),
        "left": boxes.left.tolist(),
        "width": boxes.width.tolist(),
        "change": boxes.change.tolist(),
        "total": boxes.window.total.tolist(),
        "titles": explanations(boxes, per),
        "names": [name.text for name in boxes.names],
        "labels": [
            [f"{sign}{name.text}{MARKS.get(name.kind, '')}" for sign in signs]
            for name in boxes.names
        ],
        "kinds": [name.kind if name.kind in HUES else "other" for name in boxes.names],
        "shades": [shade_of(name.text) for name in boxes.names],
        "palette": {"light": kind_colours(dark=False), "dark": kind_colours(dark=True)},
    }
    if boxes.baseline is not None:
        graph["strength"] = strengths(boxes.window.share - boxes.baseline.share)
        graph["changes"] = [change.name.lower() for change in Change]
        graph["palette"] = {"light": change_colours(dark=False), "dark": change_colours(dark=True)}
    return graph


def _hash(content: str) -> str:
    return f"sha256-{b64encode(sha256(content.encode()).digest()).decode()}"
