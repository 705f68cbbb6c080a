"""The widget that puts lines on the terminal, and redraws only those that changed: a view left open
over ssh stays quiet.
"""

from collections.abc import Callable
from typing import Final

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from necroscope.views.tui.line import Line

# Dark letters on the mode's colour in bars, the colour itself in words; hues that stay apart for
# most colour-blind eyes.
_MODE_COLOURS: Final = {
    "system": "#e8604c",
    "irq": "#e8b34c",
    "softirq": "#d77fd7",
    "steal": "#f2f27f",
    "user": "#5fa8e8",
    "nice": "#7fc8c8",
    "guest": "#8f9fe8",
    "iowait": "#9c8f7f",
    "unaccounted": "#ffffff",
}
_BACKGROUND: Final = "#101418"
_STYLES: Final = {
    "plain": Style.parse("#c8d0d8"),
    "dim": Style.parse("#7f8c99"),
    "strong": Style.parse("bold #e8eef4"),
    "title": Style.parse("bold #7fd0a0"),
    "good": Style.parse("bold #7fd0a0"),
    "heading": Style.parse("bold #9fb0c0 on #1c242c"),
    "warn": Style.parse("#f0c060"),
    "alarm": Style.parse("bold #ff7f6f"),
    "alert": Style.parse("bold #101418 on #ff7f6f"),
    "selected": Style.parse("bold reverse #e8eef4"),
    "history": Style.parse("#9fc0d8"),
    "key": Style.parse("bold #101418 on #7f8c99"),
    "idle": Style.parse("#3c4650"),
    "idle-word": Style.parse("#7f8c99"),
    **{mode: Style.parse(f"#101418 on {colour}") for mode, colour in _MODE_COLOURS.items()},
    **{f"{mode}-word": Style.parse(f"bold {colour}") for mode, colour in _MODE_COLOURS.items()},
}
_ON_BACKGROUND: Final = {
    role: Style(bgcolor=_BACKGROUND) + style for role, style in _STYLES.items()
}


class Canvas(Widget):
    """Lines over the whole of the terminal."""

    DEFAULT_CSS = "Canvas { width: 100%; height: 100%; }"

    def __init__(self, on_new_size: Callable[[], None]) -> None:
        super().__init__()
        self.lines: list[Line] = []
        self._on_new_size = on_new_size

    def on_resize(self) -> None:
        self._on_new_size()

    def show(self, lines: list[Line]) -> None:
        before, self.lines = self.lines, lines
        width = self.size.width
        if len(before) != len(lines):
            self.refresh()
        elif changed := [
            y for y, (old, new) in enumerate(zip(before, lines, strict=True)) if old != new
        ]:
            self.refresh(*(Region(0, y, width, 1) for y in changed))

    def render_line(self, y: int) -> Strip:
        line = self.lines[y] if y < len(self.lines) else ()
        strip = Strip([Segment(span.text, _ON_BACKGROUND[span.role]) for span in line])
        return strip.adjust_cell_length(self.size.width, _ON_BACKGROUND["plain"])
