"""Which page is drawn: the overview, one core, or the help."""

from necroscope.views.tui.core_page import draw_core_page
from necroscope.views.tui.help_page import draw_help
from necroscope.views.tui.line import Line
from necroscope.views.tui.overview import draw_overview
from necroscope.views.tui.screen import Screen


def draw(
    screen: Screen, node: str, width: int, height: int, *, is_help: bool = False
) -> list[Line]:
    """Exactly `height` lines of exactly `width` cells."""
    if is_help:
        return draw_help(screen, width, height)
    if screen.detail:
        return draw_core_page(screen, node, width, height)
    return draw_overview(screen, node, width, height)
