"""The sub-second heat map as an SVG: seconds from left to right, the offset within them upwards,
colour by samples.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from necroscope.model.units import NS_PER_MS, NS_PER_S, format_duration
from necroscope.store.heatmap import HeatMap
from necroscope.views.flame.heading import Heading
from necroscope.views.format import count, time_of_day

LEVELS: Final = 16
# The colour of no sample, then from few to most: each darker than the one before, so that it also
# reads without hue.
EMPTY: Final = (250, 247, 240)
FEWEST: Final = (254, 217, 118)
MIDDLE: Final = (240, 80, 45)
MOST: Final = (84, 0, 28)
HATCH: Final = (150, 150, 150)
PAPER: Final = (232, 232, 232)
_LABEL_PIXELS: Final = 90
_STEPS_S: Final = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 86400)


class Tick(NamedTuple):
    """A label next to an axis, at a distance from the map's lower left corner."""

    pixels: float
    text: str


@dataclass(frozen=True, slots=True)
class HeatLayout:
    cell_width: int
    cell_height: int
    width: int
    height: int

    @classmethod
    def of(cls, heat: HeatMap) -> "HeatLayout":
        rows, columns = heat.weights.shape
        cell_width = min(max(1000 // max(columns, 1), 2), 16)
        cell_height = min(max(400 // max(rows, 1), 2), 12)
        return cls(cell_width, cell_height, cell_width * columns, cell_height * rows)

    def time_ticks(self, heat: HeatMap) -> Iterator[Tick]:
        """At whole multiples of a step that leaves room for the labels."""
        pixels_a_second = self.cell_width * NS_PER_S / heat.column_ns
        step_s = next(
            (step for step in _STEPS_S if step * pixels_a_second >= _LABEL_PIXELS), _STEPS_S[-1]
        )
        start_s = heat.start_ns / NS_PER_S
        second = -(-heat.start_ns // (step_s * NS_PER_S)) * step_s
        while (pixels := (second - start_s) * pixels_a_second) < max(self.width, 1):
            yield Tick(pixels, time_of_day(second * NS_PER_S))
            second += step_s

    def offset_ticks(self, heat: HeatMap) -> Iterator[Tick]:
        for quarter in range(5):
            offset_ns = heat.column_ns * quarter // 4
            text = (
                f"{offset_ns / NS_PER_S:g} s"
                if offset_ns % NS_PER_S == 0
                else f"{offset_ns / NS_PER_MS:g} ms"
            )
            yield Tick(self.height * quarter / 4, text)


def axes_line(heat: HeatMap) -> str:
    """What the axes are."""
    return (
        f"time of day, UTC, {format_duration(heat.column_ns)} a column; upwards: offset within the"
        " column"
    )


def levels(heat: HeatMap) -> NDArray[np.int64]:
    """0 where there was no sample, else 1 to LEVELS in even steps to the busiest cell; -1 where
    nothing was recorded.
    """
    most = max(int(heat.weights.max(initial=0)), 1)
    found = -(-heat.weights * LEVELS // most)
    return np.where(heat.is_known, found, -1).astype(np.int64)


def colours() -> NDArray[np.uint8]:
    """By level."""
    steps = np.linspace(0, 1, LEVELS)[:, None]
    few, middle, most = (np.array(colour) for colour in (FEWEST, MIDDLE, MOST))
    ramp = np.where(
        steps < 0.5, few + (middle - few) * steps * 2, middle + (most - middle) * (steps * 2 - 1)
    )
    return np.vstack([np.array(EMPTY), ramp]).round().astype(np.uint8)


_LEFT: Final = 60
_LINE: Final = 16
_STYLE: Final = """
svg { font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; font-size: 11px; background: #fff; }
text { fill: #222; } .title { font: 17px system-ui, "DejaVu Sans", sans-serif; }
.axis { stroke: #888; } .offset { text-anchor: end; }
.column { fill: transparent; } .column:hover { stroke: #000; }
"""


def heat_map_svg(heat: HeatMap, heading: Heading) -> str:
    layout = HeatLayout.of(heat)
    lines = heading.lines()
    top = 44 + _LINE * len(lines)
    width = max(_LEFT + layout.width + 20, 700)
    height = top + layout.height + 76
    parts = [
        f'<text class="title" x="10" y="24">{escape(heading.headline)}</text>',
        *(
            f'<text x="10" y="{44 + _LINE * row}">{escape(line)}</text>'
            for row, line in enumerate(lines)
        ),
        f'<g transform="translate({_LEFT},{top})">',
        *_cells(heat, layout),
        *_axes(heat, layout),
        *_columns(heat, layout),
        "</g>",
        *_scale(heat, top + layout.height + 52),
    ]
    body = "\n".join(parts)
    return f"""<?xml version="1.0" encoding="UTF-8" standalone="no"?>
<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">
<title>{escape(heading.headline)}</title>
<style><![CDATA[{_STYLE}]]></style>
<defs><pattern id="gap" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
<rect width="6" height="6" fill="rgb{PAPER}"/><rect width="2" height="6" fill="rgb{HATCH}"/></pattern></defs>
<rect width="{width}" height="{height}" fill="#fff"/>
{body}
</svg>
"""


def _cells(heat: HeatMap, layout: HeatLayout) -> Iterator[str]:
    """One path a colour: a rectangle each would make a picture of an hour ten times as large."""
    by_level = levels(heat)
    wide, high = layout.cell_width, layout.cell_height
    fills = {-1: "url(#gap)"} | {
        level: f"rgb{tuple(colour)}" for level, colour in enumerate(colours().tolist())
    }
    for level, fill in fills.items():
        rows, columns = (by_level == level).nonzero()
        places = zip(
            (columns * wide).tolist(), (layout.height - (rows + 1) * high).tolist(), strict=True
        )
        if path := "".join(f"M{x} {y}h{wide}v{high}h-{wide}z" for x, y in places):
            yield f'<path fill="{fill}" d="{path}"/>'


def _axes(heat: HeatMap, layout: HeatLayout) -> Iterator[str]:
    yield f'<path class="axis" fill="none" d="M0 0V{layout.height}H{layout.width}"/>'
    for tick in layout.time_ticks(heat):
        yield f'<path class="axis" d="M{tick.pixels:.1f} {layout.height}v5"/>'
        yield f'<text x="{tick.pixels:.1f}" y="{layout.height + 17}">{tick.text}</text>'
    yield f'<text x="0" y="{layout.height + 33}">{axes_line(heat)}</text>'
    for tick in layout.offset_ticks(heat):
        yield f'<path class="axis" d="M0 {layout.height - tick.pixels:.1f}h-5"/>'
        yield (
            '<text class="offset" x="-8"'
            f' y="{layout.height - tick.pixels + 4:.1f}">{tick.text}</text>'
        )


def _columns(heat: HeatMap, layout: HeatLayout) -> Iterator[str]:
    for column, total in enumerate(heat.column_totals.tolist()):
        moment = time_of_day(heat.start_ns + column * heat.column_ns)
        said = f"{count(total)} samples" if heat.is_known[:, column].any() else "not recorded"
        place = (
            f'x="{column * layout.cell_width}" y="0" width="{layout.cell_width}"'
            f' height="{layout.height}"'
        )
        yield f'<rect class="column" {place}><title>{moment}: {said}</title></rect>'


def _scale(heat: HeatMap, y: int) -> Iterator[str]:
    ramp = colours().tolist()
    yield f'<text x="{_LEFT}" y="{y + 10}">samples per cell: 0</text>'
    for level, colour in enumerate(ramp):
        yield (
            f'<rect x="{_LEFT + 124 + 12 * level}" y="{y}" width="12" height="12"'
            f' fill="rgb{tuple(colour)}"/>'
        )
    right = _LEFT + 130 + 12 * len(ramp)
    yield f'<text x="{right}" y="{y + 10}">{count(int(heat.weights.max(initial=0)))}</text>'
    if not heat.is_known.all():
        yield f'<rect x="{right + 70}" y="{y}" width="24" height="12" fill="url(#gap)"/>'
        yield f'<text x="{right + 100}" y="{y + 10}">not recorded</text>'
