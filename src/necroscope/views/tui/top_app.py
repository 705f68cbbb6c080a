"""The live terminal view as an application: draws once per second, and at once on a key."""

import time
from collections.abc import Callable
from typing import ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.events import Key

from necroscope.model.span import Extent
from necroscope.model.top_source import TopSource
from necroscope.model.units import NS_PER_S
from necroscope.views.format import literal
from necroscope.views.tui.canvas import Canvas
from necroscope.views.tui.help_page import draw
from necroscope.views.tui.look import Look
from necroscope.views.tui.screen import Screen
from necroscope.views.tui.top_model import build


class TopApp(App[None]):
    """`node` is the name in the title; `period_s` 0 draws on keys only."""

    ENABLE_COMMAND_PALETTE = False
    ALLOW_SELECT = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,ctrl+c", "quit"),
        Binding("s", "sort"),
        Binding("space", "freeze"),
        Binding("left", "move(-1)"),
        Binding("right", "move(1)"),
        Binding("shift+left,left_square_bracket", "move(-60)"),
        Binding("shift+right,right_square_bracket", "move(60)"),
        Binding("g,home", "oldest"),
        Binding("G,end", "now"),
        Binding("up,k", "select(-1)"),
        Binding("down,j", "select(1)"),
        Binding("pageup", "select(-10)"),
        Binding("pagedown", "select(10)"),
        Binding("enter,a", "detail"),
        Binding("escape", "overview"),
        Binding("question_mark", "help"),
    ]

    def __init__(
        self,
        source: TopSource,
        node: str = "",
        period_s: float = 1.0,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        super().__init__()
        self.animation_level = "none"
        self.look = Look()
        self.shown: Screen | None = None
        self.is_help = False
        self._source = source
        self._node = literal(node)
        self._period_s = period_s
        self._monotonic_ns = monotonic_ns
        self._newest_ns: int | None = None
        self._newest_since_ns = monotonic_ns()

    def compose(self) -> ComposeResult:
        yield Canvas(on_new_size=self.redraw)

    def on_mount(self) -> None:
        if self._period_s:
            self.set_interval(self._period_s, self.redraw)

    def on_key(self, event: Key) -> None:
        """While the help is up, any key closes it and does nothing else; this comes before the
        bindings.
        """
        if self.is_help:
            event.prevent_default()
            self.action_help()

    def redraw(self) -> None:
        canvas = self.query_one(Canvas)
        width, height = canvas.size
        if width and height:
            self.shown = build(
                self._source, self.look, self._silent_ns(), looked_at=height * 3 // 4
            )
            canvas.show(draw(self.shown, self._node, width, height, is_help=self.is_help))

    def action_sort(self) -> None:
        if self.shown:
            self._turn(self.look.next_sort(self.shown.sort))

    def action_freeze(self) -> None:
        self._turn(self.look.freeze(self._span()))

    def action_move(self, seconds: int) -> None:
        self._turn(self.look.move(seconds * NS_PER_S, self._span()))

    def action_oldest(self) -> None:
        self._turn(self.look.oldest(self._span()))

    def action_now(self) -> None:
        self._turn(self.look.live())

    def action_select(self, by: int) -> None:
        self._turn(self.look.select(by, self._cpus()))

    def action_detail(self) -> None:
        self._turn(self.look.toggle_detail(self._cpus()))

    def action_overview(self) -> None:
        self._turn(self.look.close_detail())

    def action_help(self) -> None:
        self.is_help = not self.is_help
        self.redraw()

    def _turn(self, look: Look) -> None:
        self.look = look
        self.redraw()

    def _span(self) -> Extent | None:
        return self._source.span()

    def _cpus(self) -> list[int]:
        return [core.cpu for core in self.shown.cores] if self.shown else []

    def _silent_ns(self) -> int:
        """For how long the newest moment has been the same, by a clock that cannot be stepped."""
        span, now_ns = self._source.span(), self._monotonic_ns()
        newest_ns = span[1] if span else None
        if newest_ns != self._newest_ns:
            self._newest_ns, self._newest_since_ns = newest_ns, now_ns
        return now_ns - self._newest_since_ns
