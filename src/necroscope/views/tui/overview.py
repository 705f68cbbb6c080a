"""The first page: all cores, and the last events, in whatever room the terminal has."""

from typing import Final

from necroscope.views.format import cells, fit, time_of_day
from necroscope.views.tui.core_list import draw_list
from necroscope.views.tui.core_map import MapShape, draw_map
from necroscope.views.tui.header import draw_header
from necroscope.views.tui.line import Line, StyledSpan, fit_line, key_line
from necroscope.views.tui.screen import Position, Screen, ScreenEvent

_TASK_LINES: Final = 4
_KIND_WIDTH: Final = 16


def draw_overview(screen: Screen, node: str, width: int, height: int) -> list[Line]:
    """Exactly `height` lines."""
    header = draw_header(screen, node, width, notice_lines=1 if height < 40 else 3)
    room = max(height - len(header) - 1, 0)
    events = min(max(3, room // 5), max(room - 6, 0))
    cores = draw_cores(screen, width, room - events - 1)
    lines = [*header, *cores, *draw_happenings(screen, width, room - len(cores))]
    return [
        *lines[: height - 1],
        *[fit_line((), width)] * (height - 1 - len(lines)),
        _keys(screen, width),
    ]


def draw_cores(screen: Screen, width: int, height: int) -> list[Line]:
    """A row a core if they all have one, else a map of all and a list of those on top of the
    order.
    """
    cores = len(screen.cores)
    if cores == 0:
        return [fit_line((StyledSpan(" no core has a row at this moment", "warn"),), width)]
    if cores + 1 <= height:
        return draw_list(
            screen, width, height, lines_per_core=min(_TASK_LINES, (height - 1) // cores)
        )
    map_height = max(height // 2, 1)
    shape = MapShape.fitting(cores, width, map_height)
    lines = draw_map(screen, shape, width, map_height)
    return [*lines, *draw_list(screen, width, height - len(lines))]


def draw_happenings(screen: Screen, width: int, height: int) -> list[Line]:
    if height < 2:
        return []
    title = " EVENTS" if screen.happenings else " EVENTS  none in memory"
    shown = screen.happenings[: height - 1]
    kind_width = min(max((cells(one.kind) for one in shown), default=0), _KIND_WIDTH)
    place_width = min(max((cells(one.where) for one in shown), default=0), width // 5)
    return [
        (StyledSpan(fit(title, width), "heading"),),
        *(_happening(one, kind_width, place_width, width) for one in shown),
    ]


def _happening(happening: ScreenEvent, kind_width: int, place_width: int, width: int) -> Line:
    role = "warn" if happening.kind == "gap" else "alarm" if happening.is_alarming else "plain"
    time = StyledSpan(f" {time_of_day(happening.time_ns)}  ", "dim")
    kind, place = (
        StyledSpan(fit(happening.kind, kind_width) + "  ", role),
        StyledSpan(fit(happening.where, place_width) + "  ", "strong"),
    )
    return fit_line((time, kind, place, StyledSpan(happening.text)), width)


def _keys(screen: Screen, width: int) -> Line:
    freeze = "freeze" if screen.position is Position.LIVE else "follow"
    keys = (
        ("s", f"sort: {screen.sort.value}"),
        ("space", freeze),
        ("← →", "time"),
        ("↑ ↓ ↵", "core"),
        ("?", "help"),
        ("q", "quit"),
    )
    return key_line(keys, width)
