"""The heat map's pictures: the right cell in the right colour, gaps hatched, axes labelled, every
name escaped.
"""

import struct
import zlib
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from necroscope.store.heatmap import HeatMap
from necroscope.views.flame.bitmap_font import text_points
from necroscope.views.flame.heading import Heading
from necroscope.views.flame.heat_layout import (
    EMPTY,
    HATCH,
    LEVELS,
    MOST,
    HeatLayout,
    colours,
    levels,
)
from necroscope.views.flame.heat_png import heat_map_png
from necroscope.views.flame.heat_svg import heat_map_svg

SVG = "{http://www.w3.org/2000/svg}"
START_NS = 1_790_000_003_000_000_000


@pytest.fixture
def heat() -> HeatMap:
    """20 s in 50 rows; all is quiet but one cell, and the last two seconds are not known."""
    weights = np.zeros((50, 20), dtype=np.int64)
    weights[10, 5] = 40
    weights[11, 5] = 1
    is_known = np.ones((50, 20), dtype=bool)
    is_known[:, 18:] = False
    return HeatMap(weights, is_known, weights.sum(axis=0), START_NS, 10**9, None, None, 41, [])


def pixels(content: bytes) -> tuple[np.ndarray[Any, np.dtype[np.uint8]], dict[bytes, bytes]]:
    """A PNG back to what it shows, its checksums held."""
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    chunks: dict[bytes, bytes] = {}
    place = 8
    while place < len(content):
        length, kind = struct.unpack_from(">I4s", content, place)
        chunks[kind] = content[place + 8 : place + 8 + length]
        assert (
            zlib.crc32(kind + chunks[kind])
            == struct.unpack_from(">I", content, place + 8 + length)[0]
        )
        place += 12 + length
    width, height = struct.unpack_from(">II", chunks[b"IHDR"])
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, 1 + 3 * width)
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape(height, width, 3), chunks


def test_levels_tell_none_from_few_and_from_not_recorded(heat: HeatMap) -> None:
    found = levels(heat)
    assert (found[0, 0], found[11, 5], found[10, 5], found[0, 18]) == (0, 1, LEVELS, -1)


def test_every_level_is_darker_than_the_one_before() -> None:
    brightness = colours().astype(int) @ [299, 587, 114]
    assert (np.diff(brightness) < 0).all()


def test_the_png_shows_the_cell_at_its_second_and_offset(heat: HeatMap, heading: Heading) -> None:
    picture, _ = pixels(heat_map_png(heat, heading))
    layout = HeatLayout.of(heat)
    rows, columns = (picture == MOST).all(axis=2)[:-40].nonzero()
    (bottom,) = {int(row) for row in (picture == EMPTY).all(axis=2)[:-40].nonzero()[0][-1:]}
    assert (len(set(columns.tolist())), len(set(rows.tolist()))) == (
        layout.cell_width,
        layout.cell_height,
    )
    assert (int(columns.min()) - 76) // layout.cell_width == 5
    assert (bottom - int(rows.max())) // layout.cell_height == 10


def test_the_png_hatches_what_was_not_recorded(heat: HeatMap, heading: Heading) -> None:
    picture, _ = pixels(heat_map_png(heat, heading))
    layout = HeatLayout.of(heat)
    hatched = (picture == HATCH).all(axis=2)[:-40].nonzero()[1]
    assert (int(hatched.min()) - 76) // layout.cell_width == 18


def test_the_png_says_its_window_as_text_too(heat: HeatMap, heading: Heading) -> None:
    _, chunks = pixels(heat_map_png(heat, heading))
    assert b"necroscope" in chunks[b"iTXt"]


def test_a_browser_shows_the_png_and_the_svg(
    heat: HeatMap, heading: Heading, browser: Any, tmp_path: Path
) -> None:
    for name, content in (
        ("heat.png", heat_map_png(heat, heading)),
        ("heat.svg", heat_map_svg(heat, heading).encode()),
    ):
        (tmp_path / name).write_bytes(content)
        browser.open(tmp_path / name)
        size = (
            "document.images[0]?.naturalWidth ??"
            " document.documentElement.getBoundingClientRect().width"
        )
        assert browser.evaluate(size) >= 640


def test_the_svg_labels_its_axes(heat: HeatMap, heading: Heading) -> None:
    root = ET.fromstring(heat_map_svg(heat, heading).encode())
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert {
        "0 s",
        "250 ms",
        "500 ms",
        "750 ms",
        "1 s",
        "14:13:30",
        "14:13:40",
        "not recorded",
    } <= set(texts)
    titles = [title.text for title in root.iter(f"{SVG}title")]
    assert "14:13:28: 41 samples" in titles
    assert "14:13:41: not recorded" in titles


def test_hostile_headings_are_text_and_nothing_else(
    heat: HeatMap, hostile_heading: Heading
) -> None:
    root = ET.fromstring(heat_map_svg(heat, hostile_heading).encode())
    assert not list(root.iter(f"{SVG}script"))
    assert not list(root.iter(f"{SVG}image"))
    pixels(heat_map_png(heat, hostile_heading))


def test_an_empty_map_is_a_picture(heading: Heading) -> None:
    nothing = np.zeros((50, 0), dtype=np.int64)
    empty = HeatMap(
        nothing, nothing.astype(bool), nothing.sum(axis=0), START_NS, 10**9, None, None, 0, []
    )
    pixels(heat_map_png(empty, heading))
    ET.fromstring(heat_map_svg(empty, heading).encode())


def test_the_font_draws_a_question_mark_for_what_it_lacks() -> None:
    assert (text_points("é") == text_points("?")).all()
    assert text_points("a1").shape == (10, 16)
    assert not text_points(" ").any()
