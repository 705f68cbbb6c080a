"""The heat map's pictures: the right cell in the right colour, gaps hatched, axes labelled, every
name escaped.
"""

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from necroscope.store.heatmap import HeatMap
from necroscope.views.flame.heading import Heading
from necroscope.views.flame.heat_svg import LEVELS, MOST, HeatLayout, colours, heat_map_svg, levels

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


def cells(root: ET.Element, fill: str) -> list[tuple[int, int]]:
    """The lower left corners, in pixels, of the cells drawn in a colour."""
    (path,) = (path for path in root.iter(f"{SVG}path") if path.get("fill") == fill)
    return [(int(x), int(y)) for x, y in re.findall(r"M(\d+) (\d+)h", path.get("d") or "")]


def test_levels_tell_none_from_few_and_from_not_recorded(heat: HeatMap) -> None:
    found = levels(heat)
    assert (found[0, 0], found[11, 5], found[10, 5], found[0, 18]) == (0, 1, LEVELS, -1)


def test_every_level_is_darker_than_the_one_before() -> None:
    brightness = colours().astype(int) @ [299, 587, 114]
    assert (np.diff(brightness) < 0).all()


def test_the_svg_shows_the_cell_at_its_second_and_offset(heat: HeatMap, heading: Heading) -> None:
    layout = HeatLayout.of(heat)
    ((x, y),) = cells(ET.fromstring(heat_map_svg(heat, heading).encode()), f"rgb{MOST}")
    assert x == 5 * layout.cell_width
    assert layout.height - y == 11 * layout.cell_height


def test_the_svg_hatches_what_was_not_recorded(heat: HeatMap, heading: Heading) -> None:
    layout = HeatLayout.of(heat)
    hatched = cells(ET.fromstring(heat_map_svg(heat, heading).encode()), "url(#gap)")
    assert {x // layout.cell_width for x, _ in hatched} == {18, 19}


def test_a_browser_shows_the_svg(
    heat: HeatMap, heading: Heading, browser: Any, tmp_path: Path
) -> None:
    (tmp_path / "heat.svg").write_bytes(heat_map_svg(heat, heading).encode())
    browser.open(tmp_path / "heat.svg")
    assert browser.evaluate("document.documentElement.getBoundingClientRect().width") >= 640


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


def test_an_empty_map_is_a_picture(heading: Heading) -> None:
    nothing = np.zeros((50, 0), dtype=np.int64)
    empty = HeatMap(
        nothing, nothing.astype(bool), nothing.sum(axis=0), START_NS, 10**9, None, None, 0, []
    )
    ET.fromstring(heat_map_svg(empty, heading).encode())
