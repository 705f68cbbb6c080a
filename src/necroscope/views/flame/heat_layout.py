"""What both pictures of a heat map share: the size of a cell, the places of the axes' labels, and
the colour of a count.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from necroscope.model.units import NS_PER_MS, NS_PER_S, format_duration
from necroscope.store.heatmap import HeatMap
from necroscope.views.format import time_of_day

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
_STEPS_S: Final = (
    1,
    2,
    5,
    10,
    15,
    30,
    60,
    120,
    300,
    600,
    900,
    1800,
    3600,
    7200,
    14400,
    43200,
    86400,
)


class Tick(NamedTuple):
    """A label beside an axis, at a distance from the map's lower left corner."""

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
