"""A row for each core: how it spends its time, how long its softirqs waited, who is on it and in
which function.
"""

from dataclasses import dataclass
from itertools import zip_longest
from typing import Final

from necroscope.model.definitions import STALL_NS
from necroscope.views.format import (
    MISSING,
    brief_duration,
    fit,
    fit_right,
    fit_tail,
    percent,
    sparkline,
)
from necroscope.views.tui.line import Line, StyledSpan, bar, fit_line
from necroscope.views.tui.screen import CoreOrder, Delay, OnCore, Screen, ScreenCore

NONE_HAPPENED: Final = "·"
_QUIET: Final = 0.1
_SORT_MARKS: Final = {
    CoreOrder.CPU: "CPU",
    CoreOrder.BUSY: "BUSY",
    CoreOrder.SYSTEM: "MODES",
    CoreOrder.DELAY: "DELAY",
}


@dataclass(frozen=True, slots=True)
class ColumnWidths:
    """Widths; 0 is a column for which there is no room."""

    bar: int
    delay: int
    history: int
    who: int
    cgroup: int
    function: int

    @classmethod
    def fitting(cls, width: int) -> "ColumnWidths":
        """The narrowest of the three layouts is made for 80 columns."""
        if width >= 160:
            return cls(28, 17, 30, 29, *_split(width - 12 - 28 - 17 - 30 - 29 - 5, 0.45))
        if width >= 110:
            return cls(20, 17, 0, 29, *_split(width - 12 - 20 - 17 - 29 - 4, 0.4))
        who, function = _split(width - 12 - 12 - 7 - 3, 0.5)
        return cls(12, 7, 0, who, 0, function)

    @property
    def before_who(self) -> int:
        return 12 + self.bar + 1 + self.delay + 1 + (self.history + 1 if self.history else 0)


def draw_list(screen: Screen, width: int, height: int, lines_per_core: int = 1) -> list[Line]:
    """A title and as many cores as there is room for, the selected one among them; what is left out
    is counted.
    """
    columns = ColumnWidths.fitting(width)
    room = (height - 1) // lines_per_core
    first = _first_shown(screen, room)
    shown = screen.cores[first : first + room]
    lines = [_titles(screen, columns, len(shown), width)]
    for core in shown:
        drawn = _core_lines(screen, core, columns, width)[:lines_per_core]
        lines += [*drawn, *[fit_line((), width)] * (lines_per_core - len(drawn))]
    return lines


def _split(width: int, part: float) -> tuple[int, int]:
    return round(width * part), width - round(width * part)


def _first_shown(screen: Screen, room: int) -> int:
    place = next(
        (place for place, core in enumerate(screen.cores) if core.cpu == screen.selected), 0
    )
    return max(0, min(place - room // 2, len(screen.cores) - room))


def _titles(screen: Screen, columns: ColumnWidths, shown: int, width: int) -> Line:
    mark = _SORT_MARKS[screen.sort]
    parts = (
        ("CPU", 5),
        ("BUSY", 5),
        ("MODES", columns.bar),
        ("DELAY", columns.delay),
        ("BUSY BY SECOND", columns.history),
        ("ON IT", columns.who),
        ("CGROUP", columns.cgroup),
        ("IN FUNCTION", columns.function),
    )
    marked = [(name + ("▾" if name == mark else ""), size) for name, size in parts if size]
    text = "".join(
        (fit_right if name.startswith("CPU") else fit)(name, size) + " " for name, size in marked
    )
    left = len(screen.cores) - shown
    more = f" {left} more" if left else ""
    return (StyledSpan(fit(text.rstrip(), width - len(more)) + more, "heading"),)


def _core_lines(screen: Screen, core: ScreenCore, columns: ColumnWidths, width: int) -> list[Line]:
    """The row itself; below it, as far as there is room: the past, the cgroup that had no column,
    and who else is on it.
    """
    lead = _lead(screen, core)
    if core.modes is None:
        return [fit_line((*lead, StyledSpan(f"gap: {core.missing}", "warn")), width)]
    is_sampled = any(other.on for other in screen.cores)
    role = "dim" if core.modes.busy < _QUIET else "plain"
    left = (
        *lead,
        *bar(core.modes, columns.bar),
        StyledSpan(" "),
        *_delay(screen, core, columns.delay),
        StyledSpan(" "),
    )
    if columns.history:
        left = (*left, *_history(core, columns.history), StyledSpan(" "))
    below = [_task(task, columns, "dim", is_sampled) for task in core.on[1:]]
    if not columns.cgroup:
        below.insert(0, _cgroup(core, width - columns.before_who))
    lefts = [left, *([] if columns.history else [_past_below(core, columns)])]
    rights = [_task(core.on[0] if core.on else None, columns, role, is_sampled), *below]
    return [
        fit_line((*start, *end), width)
        for start, end in zip_longest(lefts, rights, fillvalue=_indent(columns))
    ]


def _lead(screen: Screen, core: ScreenCore) -> Line:
    is_selected = core.cpu == screen.selected
    cpu = StyledSpan(
        f"{'▸' if is_selected else ' '}{core.cpu:>4} ", "selected" if is_selected else "strong"
    )
    return (cpu, StyledSpan(fit_right(percent(core.modes.busy if core.modes else None), 4) + "  "))


def _indent(columns: ColumnWidths) -> Line:
    return (StyledSpan(" " * columns.before_who),)


def _past_below(core: ScreenCore, columns: ColumnWidths) -> Line:
    """The past as a sparkline, right below the bar."""
    return (
        StyledSpan(" " * 12),
        *_history(core, columns.bar),
        StyledSpan(" " * (columns.before_who - 12 - columns.bar)),
    )


def _cgroup(core: ScreenCore, width: int) -> Line:
    return (StyledSpan(fit_tail((core.on[0].cgroup if core.on else None) or "", width), "dim"),)


def _history(core: ScreenCore, width: int) -> Line:
    return (StyledSpan(fit_right(sparkline(core.busy_history[-width:]), width), "history"),)


def _delay(screen: Screen, core: ScreenCore, width: int) -> Line:
    """The longest wait, of a softirq or of a task for this core; `+` means that it has not ended.
    Not measured is a dash, measured and none is a dot.
    """
    delay = max(filter(None, (core.delay, core.task_wait)), key=_worst_ns, default=None)
    if delay is None:
        nothing = MISSING if screen.worst_delay is None else NONE_HAPPENED
        return (
            StyledSpan(
                fit_right(core.softirq_note or nothing, 7).ljust(width),
                "alert" if core.softirq_note else "dim",
            ),
        )
    wait = fit_right(brief_duration(delay.worst_ns) + ("+" if delay.is_pending else ""), 7)
    role = "alert" if delay.worst_ns >= STALL_NS else "plain"
    return (StyledSpan(wait, role), StyledSpan(fit(f" {delay.vector}", width - 7)))


def _worst_ns(delay: Delay) -> int:
    return delay.worst_ns


def _task(task: OnCore | None, columns: ColumnWidths, role: str, is_sampled: bool) -> Line:
    if task is None:
        return (StyledSpan(NONE_HAPPENED if is_sampled else MISSING, "dim"),)
    who = fit(f"{task.comm} {task.pid}", columns.who - 5) + fit_right(percent(task.share), 5)
    spans = [StyledSpan(who + " ", role)]
    if columns.cgroup:
        spans.append(StyledSpan(fit_tail(task.cgroup or MISSING, columns.cgroup) + " ", "dim"))
    return (*spans, *_function(task, columns.function, role))


def _function(task: OnCore, width: int, role: str) -> Line:
    """Marked as `perf` marks it: [k] is the kernel, [.] is user code."""
    if task.function is None:
        return (StyledSpan(fit(MISSING, width), "dim"),)
    return (
        StyledSpan("[k] ", "system-word") if task.in_kernel else StyledSpan("[.] ", "user-word"),
        StyledSpan(fit(task.function, width - 4), role),
    )
