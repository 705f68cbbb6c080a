"""The same screen without a terminal: as text for `top --once`, as JSON values for `top --json`."""

from dataclasses import asdict
from typing import Any, Final

from necroscope.model.units import format_moment
from necroscope.views.tui.core_list import draw_list
from necroscope.views.tui.header import draw_header
from necroscope.views.tui.line import text_of
from necroscope.views.tui.overview import draw_happenings
from necroscope.views.tui.screen import MODES, Delay, Modes, Screen, ScreenCore

WIDTH: Final = 160
_EVENTS: Final = 20


def render_plain(screen: Screen, node: str = "", width: int = WIDTH) -> str:
    """A row for every core, however many there are, without colours."""
    lines = draw_header(screen, node, width, notice_lines=len(screen.notices))
    lines += draw_list(screen, width, len(screen.cores) + 1)
    lines += draw_happenings(screen, width, _EVENTS + 1)
    return "".join(f"{text_of(line).rstrip()}\n" for line in lines)


def screen_to_json(screen: Screen) -> dict[str, Any]:
    """Values that `json.dumps` takes; shares are of 1, what was not measured is null."""
    return {
        "time": None if screen.at_ns is None else format_moment(screen.at_ns),
        "position": screen.position.value,
        "back_ns": screen.back_ns,
        "sort": screen.sort.value,
        "all_cores": _modes(screen.all_cores),
        "cores": [_core(core) for core in screen.cores],
        "zombies": None if screen.zombies is None else asdict(screen.zombies),
        "pressure": screen.pressure,
        "events": [
            {
                "time": format_moment(one.time_ns),
                "kind": one.kind,
                "where": one.where,
                "text": one.text,
            }
            for one in screen.happenings
        ],
        "notices": list(screen.notices),
        "status": screen.status,
    }


def _core(core: ScreenCore) -> dict[str, Any]:
    return {
        "cpu": core.cpu,
        "busy": None if core.modes is None else round(core.modes.busy, 4),
        "modes": _modes(core.modes),
        "missing": core.missing,
        "softirq_delay": None if core.delay is None else asdict(core.delay),
        "softirq_note": core.softirq_note,
        "task_wait": None if core.task_wait is None else _task_wait(core.task_wait),
        "on": [asdict(task) for task in core.on],
    }


def _task_wait(wait: Delay) -> dict[str, Any]:
    return {"worst_ns": wait.worst_ns, "comm": wait.vector, "is_pending": wait.is_pending}


def _modes(modes: Modes | None) -> dict[str, float] | None:
    return (
        None
        if modes is None
        else {mode: round(share, 4) for mode, share in zip(MODES, modes.shares, strict=True)}
    )
