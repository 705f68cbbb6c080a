"""What the keys do, what the letters mean, and every notice in full."""

from typing import Final

from necroscope.views.format import CUT, MISSING, cells, fit
from necroscope.views.tui.core_page import draw_core_page
from necroscope.views.tui.line import Line, StyledSpan, fit_line
from necroscope.views.tui.overview import draw_overview
from necroscope.views.tui.screen import Screen

KEYS: Final = (
    ("s", "sort by core, busy, system (with irq, softirq, steal), softirq delay"),
    ("space", "freeze; again to follow the recorder"),
    ("← →", "look back or forth by a second; with shift, or [ and ], by a minute"),
    ("g  G", "the oldest moment in memory; now"),
    ("↑ ↓", "take a core in hand; page up and page down move by ten"),
    ("enter a", "the page of that core, and back (also esc)"),
    ("?  q", "this help; quit"),
)
SIGNS: Final = (
    ("S I Q T", "taken by the kernel: system, irq, softirq; by the hypervisor: steal"),
    ("u n g w .", "user, nice, guest, waiting for I/O, idle"),
    ("?", "in a bar: time that no mode accounts for (interrupts off, host)"),
    (MISSING, f"not measured: a gap. A zero is written 0, and {CUT} means cut"),
    ("·", "measured, and there was none"),
    (
        "DELAY",
        "longest wait of a softirq, or of a task for the core; + still waits",
    ),
    ("frozen", "no softirq ran on a busy core; starving: its thread gets no time"),
    ("ON IT", "the task with most samples on that core in the last second"),
    ("[k] [.]", "innermost function in the kernel, in user code"),
    ("u▃ S█ S!", "small cells: chief mode, how busy; ! a softirq waited over 100 ms"),
    ("psi", "pressure: share of the tick in which some task waited for it"),
)


def draw_help(screen: Screen, width: int, height: int) -> list[Line]:
    """Exactly `height` lines; notices come last, wrapped, because they say what to do."""
    lines: list[Line] = [
        (StyledSpan(fit(" KEYS", width), "heading"),),
        *(_entry(name, text) for name, text in KEYS),
    ]
    lines += [
        (StyledSpan(fit(" SIGNS", width), "heading"),),
        *(_entry(name, text) for name, text in SIGNS),
    ]
    if screen.notices:
        lines.append((StyledSpan(fit(" NOT RECORDED", width), "heading"),))
        lines += [
            (StyledSpan(part, "warn"),)
            for notice in screen.notices
            for part in _wrap(notice, width)
        ]
    drawn = [fit_line(line, width) for line in lines[: height - 1]]
    closing = fit_line((StyledSpan(" any key ", "key"), StyledSpan("back ")), width)
    return [*drawn, *[fit_line((), width)] * (height - 1 - len(drawn)), closing]


def _entry(name: str, text: str) -> Line:
    return (StyledSpan(f" {name}" + " " * (11 - cells(name)), "strong"), StyledSpan(text))


def _wrap(text: str, width: int) -> list[str]:
    room = max(width - 2, 1)
    return [f" {text[start : start + room]}" for start in range(0, len(text), room)]


def draw(
    screen: Screen, node: str, width: int, height: int, *, is_help: bool = False
) -> list[Line]:
    """Exactly `height` lines of exactly `width` cells."""
    if is_help:
        return draw_help(screen, width, height)
    if screen.detail:
        return draw_core_page(screen, node, width, height)
    return draw_overview(screen, node, width, height)
