"""The minutes around an incident as a picture: a lane of events, and a lane a core with its modes
second by second.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

import numpy as np

from necroscope.model.core_shares import BUSY_MODES
from necroscope.model.units import NS_PER_S
from necroscope.views.format import literal, percent, time_of_day
from necroscope.views.report.core_map import CoreMap

COLOURS: Final = {
    "user": "#a9c4e6",
    "system": "#d9480f",
    "irq": "#f2b705",
    "softirq": "#8b3fbf",
    "steal": "#495057",
}
_LEFT: Final = 70
_WIDTH: Final = 1080
_TICKS: Final = 8
_MOST_NAMES: Final = 12


@dataclass(frozen=True, slots=True)
class Mark:
    """An event or an evidence on the time axis; `is_major` has its text beside it."""

    time_ns: int
    text: str
    is_major: bool = True


def timeline_svg(
    core_map: CoreMap, incident: tuple[int, int], core: int | None, marks: Sequence[Mark]
) -> str:
    row = 26 if len(core_map.cpus) <= 8 else 16
    top = 24 + 14 * len(_named(marks))
    bottom = top + row * len(core_map.cpus)
    scale = _WIDTH / core_map.seconds
    parts = [
        *_incident(core_map, incident, scale, top, bottom),
        *_lanes(core_map, core, row, top, scale),
        *_marks(core_map, marks, scale, bottom),
        *_axis(core_map, scale, bottom),
        *_legend(bottom + 34, core_map),
    ]
    width, height = _LEFT + _WIDTH + 20, bottom + 56
    label = "cores by second, coloured by mode; events above"
    body = "\n".join(parts)
    return (
        f'<svg class="timeline" role="img" aria-label="{label}" viewBox="0 0 {width} {height}"'
        f' width="{width}" height="{height}"><defs><pattern id="unrecorded" width="6" height="6"'
        ' patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="2" height="6"'
        f' fill="#999"/></pattern></defs>\n{body}\n</svg>'
    )


def _x(core_map: CoreMap, time_ns: int, scale: float) -> float:
    return _LEFT + min(max((time_ns - core_map.start_ns) / NS_PER_S, 0), core_map.seconds) * scale


def _incident(
    core_map: CoreMap, incident: tuple[int, int], scale: float, top: int, bottom: int
) -> Iterator[str]:
    left, right = (_x(core_map, edge, scale) for edge in incident)
    place = (
        f'x="{left:.1f}" y="{top - 4}" width="{max(right - left, 2):.1f}"'
        f' height="{bottom - top + 8}"'
    )
    yield f'<rect class="incident" {place}><title>the incident</title></rect>'


def _lanes(core_map: CoreMap, core: int | None, row: int, top: int, scale: float) -> Iterator[str]:
    for index, cpu in enumerate(core_map.cpus):
        base = top + row * (index + 1) - 2
        css_class = "lane hot" if cpu == core else "lane"
        yield (
            f'<text class="{css_class}" x="{_LEFT - 8}" y="{base - row / 2 + 5:.0f}">core'
            f" {cpu}</text>"
        )
        yield f'<path class="floor" d="M{_LEFT} {base}h{_WIDTH}"/>'
        yield from _lane(core_map, index, base, row - 4, scale)


def _lane(core_map: CoreMap, index: int, base: int, height: int, scale: float) -> Iterator[str]:
    """Modes stacked on each other, a path each; what no row speaks for is hatched."""
    below = np.zeros(core_map.seconds)
    for mode in BUSY_MODES:
        shares = core_map.shares[mode][index]
        known = np.flatnonzero(np.nan_to_num(shares) * height >= 0.2).tolist()
        boxes = [
            (_LEFT + second * scale, base - below[second] * height, -shares[second] * height)
            for second in known
        ]
        if boxes:
            path = "".join(
                f"M{x:.1f} {y:.1f}h{scale:.1f}v{up:.1f}h{-scale:.1f}z" for x, y, up in boxes
            )
            yield f'<path fill="{COLOURS[mode]}" d="{path}"/>'
        below += np.nan_to_num(shares)
    missing = np.flatnonzero(np.isnan(core_map.shares["user"][index])).tolist()
    if missing:
        path = "".join(
            f"M{_LEFT + second * scale:.1f} {base}h{scale:.1f}v{-height}h{-scale:.1f}z"
            for second in missing
        )
        yield f'<path fill="url(#unrecorded)" d="{path}"><title>not recorded</title></path>'


def _named(marks: Sequence[Mark]) -> list[Mark]:
    return [mark for mark in marks if mark.is_major][:_MOST_NAMES]


def _marks(core_map: CoreMap, marks: Sequence[Mark], scale: float, bottom: int) -> Iterator[str]:
    named = _named(marks)
    for mark in marks:
        x = _x(core_map, mark.time_ns, scale)
        css_class = "mark" if mark.is_major else "mark minor"
        title = escape(f"{time_of_day(mark.time_ns)} {literal(mark.text, 300)}")
        y = 14 + 14 * named.index(mark) if mark in named else 20
        yield (
            f'<path class="{css_class}" d="M{x:.1f} {y - 4}V{bottom}"><title>{title}</title></path>'
        )
        if mark in named:
            side = 'text-anchor="end"' if x > _LEFT + _WIDTH * 0.6 else ""
            shift = -5 if side else 5
            yield (
                f'<text class="name" x="{x + shift:.1f}" y="{y}"'
                f" {side}>{escape(literal(mark.text, 80))}</text>"
            )


def _axis(core_map: CoreMap, scale: float, bottom: int) -> Iterator[str]:
    step = max(1, core_map.seconds // _TICKS)
    for second in range(0, core_map.seconds - step // 2 + 1, step):
        x = _LEFT + second * scale
        yield f'<path class="floor" d="M{x:.1f} {bottom}v5"/>'
        yield (
            f'<text class="tick" x="{x:.1f}"'
            f' y="{bottom + 17}">{time_of_day(core_map.start_ns + second * NS_PER_S)}</text>'
        )


def _legend(y: int, core_map: CoreMap) -> Iterator[str]:
    x = _LEFT
    for mode, colour in COLOURS.items():
        worst = max((np.nan_to_num(row).max() for row in core_map.shares[mode]), default=0.0)
        text = f"{mode}, at most {percent(float(worst))}"
        yield f'<rect x="{x}" y="{y - 10}" width="12" height="12" fill="{colour}"/>'
        yield f'<text class="tick" x="{x + 17}" y="{y}">{text}</text>'
        x += 26 + 7 * len(text) + 10
    if core_map.left_out:
        yield (
            f'<text class="tick" x="{x}" y="{y}">{core_map.left_out} quieter cores are not'
            " shown</text>"
        )
