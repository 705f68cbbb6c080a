"""The sub-second heat map as a PNG (https://www.w3.org/TR/png), written by hand: it is a header and
one zlib stream.
"""

import struct
import zlib
from typing import Final

import numpy as np
from numpy.typing import NDArray

from necroscope.store.heatmap import HeatMap
from necroscope.views.flame.bitmap_font import CHARACTER, LINE, text_points
from necroscope.views.flame.heading import Heading
from necroscope.views.flame.heat_layout import HATCH, PAPER, HeatLayout, axes_line, colours, levels
from necroscope.views.format import count

Picture = NDArray[np.uint8]
_LEFT: Final = 76
_INK: Final = (34, 34, 34)
_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
_COLOUR: Final = 2
_MOST_CHARACTERS: Final = 180


def heat_map_png(heat: HeatMap, heading: Heading) -> bytes:
    layout = HeatLayout.of(heat)
    lines = [line[:_MOST_CHARACTERS] for line in (heading.headline, *heading.lines())]
    top = 14 + LINE * len(lines)
    width = max(_LEFT + layout.width + 60, 20 + CHARACTER * max(map(len, lines)), 640)
    picture = np.full((top + layout.height + 76, width, 3), 255, dtype=np.uint8)
    for row, line in enumerate(lines):
        _write(picture, 10, 8 + LINE * row, line)
    picture[top : top + layout.height, _LEFT : _LEFT + layout.width] = _cells(heat, layout)
    _draw_axes(picture, heat, layout, top)
    _draw_scale(picture, heat, top + layout.height + 54)
    return png(
        picture,
        {
            "Title": heading.headline,
            "Description": "\n".join(heading.lines()),
            "Software": "necroscope",
        },
    )


def _cells(heat: HeatMap, layout: HeatLayout) -> Picture:
    """The map itself, offset 0 at the bottom; where nothing was recorded it is hatched."""
    by_level = (
        levels(heat)[::-1].repeat(layout.cell_height, axis=0).repeat(layout.cell_width, axis=1)
    )
    found: Picture = np.where(
        (by_level < 0)[..., None], _hatched(*by_level.shape), colours()[by_level.clip(min=0)]
    )
    return found


def _hatched(height: int, width: int) -> Picture:
    is_line = (np.add.outer(np.arange(height), np.arange(width)) % 8 < 2)[..., None]
    return np.where(is_line, np.array(HATCH, np.uint8), np.array(PAPER, np.uint8))


def _write(picture: Picture, x: int, y: int, text: str) -> None:
    points = text_points(text)[: max(picture.shape[0] - y, 0), : max(picture.shape[1] - x, 0)]
    picture[y : y + points.shape[0], x : x + points.shape[1]][points] = _INK


def _draw_axes(picture: Picture, heat: HeatMap, layout: HeatLayout, top: int) -> None:
    bottom = top + layout.height
    picture[top:bottom, _LEFT - 1] = picture[bottom, _LEFT - 1 : _LEFT + layout.width] = _INK
    for tick in layout.time_ticks(heat):
        x = _LEFT + round(tick.pixels)
        picture[bottom : bottom + 6, x] = _INK
        _write(picture, x, bottom + 10, tick.text)
    _write(picture, _LEFT, bottom + 28, axes_line(heat))
    for tick in layout.offset_ticks(heat):
        y = bottom - round(tick.pixels)
        picture[y, _LEFT - 6 : _LEFT] = _INK
        _write(picture, _LEFT - 8 - CHARACTER * len(tick.text), max(y - 5, 0), tick.text)


def _draw_scale(picture: Picture, heat: HeatMap, y: int) -> None:
    words = "samples a cell: 0"
    _write(picture, _LEFT, y, words)
    x = _LEFT + CHARACTER * len(words) + 4
    ramp = colours().repeat(12, axis=0)
    picture[y : y + 10, x : x + len(ramp)] = ramp
    most = count(int(heat.weights.max(initial=0)))
    x += len(ramp) + 4
    _write(picture, x, y, most)
    if not heat.is_known.all():
        x += CHARACTER * (len(most) + 2)
        picture[y : y + 10, x : x + 24] = _hatched(10, 24)
        _write(picture, x + 30, y, "not recorded")


def png(picture: Picture, texts: dict[str, str]) -> bytes:
    """Eight bits a colour, rows unfiltered: large areas of one colour compress well as they are."""
    height, width, _ = picture.shape
    rows = np.hstack([np.zeros((height, 1), np.uint8), picture.reshape(height, -1)])
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, _COLOUR, 0, 0, 0))]
    chunks += [
        (b"iTXt", key.encode() + b"\0\0\0\0\0" + text.encode()) for key, text in texts.items()
    ]
    chunks += [(b"IDAT", zlib.compress(rows.tobytes(), 6)), (b"IEND", b"")]
    return _SIGNATURE + b"".join(_chunk(kind, content) for kind, content in chunks)


def _chunk(kind: bytes, content: bytes) -> bytes:
    return (
        struct.pack(">I", len(content))
        + kind
        + content
        + struct.pack(">I", zlib.crc32(kind + content))
    )
