"""All cores at once as cells in the order of their numbers, so that a place means the same core
every second.
"""

from dataclasses import dataclass
from math import ceil
from typing import Final

from necroscope.model.definitions import STALL_NS
from necroscope.views.format import MISSING, fit, fit_right, level, percent
from necroscope.views.tui.line import MODE_LETTERS, Line, StyledSpan, bar, fit_line
from necroscope.views.tui.screen import Screen, ScreenCore

_CELL_WIDTH: Final = 20
_LABEL: Final = 6
_GROUP: Final = 8
_QUIET: Final = 0.1


@dataclass(frozen=True, slots=True)
class MapShape:
    """Cells with a number and a bar, down the columns; or, when those have no room, two characters
    a core along the rows.
    """

    is_small: bool
    columns: int
    rows: int

    @classmethod
    def fitting(cls, cores: int, width: int, height: int) -> "MapShape":
        columns = next((size for size in (16, 8, 4, 2) if width // size >= _CELL_WIDTH), 1)
        if (rows := ceil(cores / columns)) <= height:
            return cls(False, ceil(cores / rows), rows)
        columns = next(
            (size for size in (64, 32, 16) if _LABEL + 2 * size + size // _GROUP <= width), _GROUP
        )
        return cls(True, columns, ceil(cores / columns))


def draw_map(screen: Screen, shape: MapShape, width: int, height: int) -> list[Line]:
    cores = sorted(screen.cores, key=lambda core: core.cpu)
    if not shape.is_small:
        return _large(screen, cores, shape, width)
    rows = [cores[start : start + shape.columns] for start in range(0, len(cores), shape.columns)]
    place = next(
        (number for number, row in enumerate(rows) for core in row if core.cpu == screen.selected),
        0,
    )
    first = max(0, min(place - height // 2, len(rows) - height))
    return [fit_line(_small_row(screen, row), width) for row in rows[first : first + height]]


def _large(screen: Screen, cores: list[ScreenCore], shape: MapShape, width: int) -> list[Line]:
    cell_width = width // shape.columns
    lines = []
    for row in range(shape.rows):
        cells = [_large_cell(screen, core, cell_width) for core in cores[row :: shape.rows]]
        lines.append(fit_line(tuple(span for cell in cells for span in cell), width))
    return lines


def _large_cell(screen: Screen, core: ScreenCore, width: int) -> Line:
    is_selected = core.cpu == screen.selected
    alarm = StyledSpan("!", "alert") if _is_delayed(core) else StyledSpan(" ")
    cpu = StyledSpan(
        f"{'▸' if is_selected else ' '}{core.cpu:>3}", "selected" if is_selected else "strong"
    )
    if core.modes is None:
        return (cpu, StyledSpan(fit(f"    {MISSING} gap", width - 4), "warn"))
    return (
        cpu,
        StyledSpan(fit_right(percent(core.modes.busy), 5)),
        alarm,
        *bar(core.modes, width - 11),
        StyledSpan(" "),
    )


def _small_row(screen: Screen, cores: list[ScreenCore]) -> Line:
    spans = [StyledSpan(f"{cores[0].cpu:>4} ", "dim")]
    for place, core in enumerate(cores):
        if place % _GROUP == 0:
            spans.append(StyledSpan(" "))
        spans.append(_small_cell(core, core.cpu == screen.selected))
    return tuple(spans)


def _small_cell(core: ScreenCore, is_selected: bool) -> StyledSpan:
    """The mode with most time and how busy the core is; `!` stands for a softirq that waited too
    long.
    """
    if core.modes is None:
        return StyledSpan(MISSING * 2, "selected" if is_selected else "warn")
    mode = core.modes.dominant if core.modes.busy >= _QUIET else "idle"
    height = "!" if _is_delayed(core) else level(core.modes.busy)
    return StyledSpan(
        MODE_LETTERS[mode] + height,
        "selected" if is_selected else "alert" if height == "!" else f"{mode}-word",
    )


def _is_delayed(core: ScreenCore) -> bool:
    return core.softirq_note is not None or (
        core.delay is not None and core.delay.worst_ns >= STALL_NS
    )
