"""The page of one core: each mode over time, its softirqs, and the tasks and functions of the last
seconds.
"""

from math import log10
from typing import Final

from necroscope.model.units import NS_PER_US
from necroscope.views.format import (
    MISSING,
    brief_duration,
    count,
    fit,
    fit_right,
    fit_tail,
    percent,
    sparkline,
    time_of_day,
)
from necroscope.views.tui.core_detail import SAMPLES_S
from necroscope.views.tui.header import draw_header
from necroscope.views.tui.line import MODE_LETTERS, Line, StyledSpan, fit_line, key_line
from necroscope.views.tui.screen import (
    CapturedTask,
    CoreDetail,
    Function,
    OnCore,
    Screen,
    ScreenThread,
)

# Left of a history: letter, name, the share now.
LABEL_WIDTH: Final = 17
_DECADES: Final = 6
_WIDE: Final = 110


def draw_core_page(screen: Screen, node: str, width: int, height: int) -> list[Line]:
    """Exactly `height` lines."""
    header = draw_header(screen, node, width, notice_lines=1)
    body = (
        _body(screen.detail, width, height - len(header) - 1)
        if screen.detail
        else [(StyledSpan(" nothing known of this core", "warn"),)]
    )
    lines = [fit_line(line, width) for line in (*header, *body)][: height - 1]
    return [*lines, *[fit_line((), width)] * (height - 1 - len(lines)), _keys(width)]


def _body(detail: CoreDetail, width: int, height: int) -> list[Line]:
    top = [_title(detail, width), *_histories(detail, width), *_softirqs(detail)]
    captured = [_task_line(one, width) for one in detail.captured[: 1 if height < 30 else 5]]
    room = height - len(top) - len(captured)
    return [*top, *captured, *_tasks_and_functions(detail, width, room)]


def _title(detail: CoreDetail, width: int) -> Line:
    seconds = len(next(iter(detail.mode_history.values())))
    text = f" CORE {detail.cpu}  share of each second, the last {min(seconds, width - LABEL_WIDTH)}"
    return (StyledSpan(fit(text, width), "heading"),)


def _histories(detail: CoreDetail, width: int) -> list[Line]:
    lines = []
    for mode, shares in detail.mode_history.items():
        if mode == "guest" and not any(shares):
            continue
        label = f" {MODE_LETTERS[mode]} {fit(mode, 8)}{fit_right(percent(shares[-1]), 5)} "
        lines.append(
            (
                StyledSpan(label, f"{mode}-word"),
                StyledSpan(sparkline(shares[-(width - LABEL_WIDTH) :]), f"{mode}-word"),
            )
        )
    return [*lines, _delays(detail, width)]


def _delays(detail: CoreDetail, width: int) -> Line:
    """On a logarithmic scale: from 1 µs at the bottom to 1 s at the top."""
    waits = detail.delay_history_ns[-(width - LABEL_WIDTH) :]
    scaled = [
        None if wait is None else log10(wait / NS_PER_US) / _DECADES if wait > NS_PER_US else 0.0
        for wait in waits
    ]
    label = f" delay {fit_right(brief_duration(waits[-1]), 9)} "
    return (
        StyledSpan(label, "strong"),
        StyledSpan(sparkline(scaled), "history"),
        StyledSpan("  1 µs to 1 s, log", "dim"),
    )


def _softirqs(detail: CoreDetail) -> list[Line]:
    ran = [f"{vector} {count(times)}" for vector, times in detail.softirqs.items() if times != 0]
    text = ("  ".join(ran) or "none") if detail.softirqs else MISSING
    lines: list[Line] = [(StyledSpan(" softirqs run  ", "dim"), StyledSpan(text))]
    return lines + [_thread(thread) for thread in detail.threads]


def _thread(thread: ScreenThread) -> Line:
    starving = thread.state == "R" and thread.run == 0
    state = " runnable and gets no time " if starving else f" state {thread.state}"
    figures = f"  ran {percent(thread.run)}, waited {percent(thread.waited)} of the last tick"
    return (
        StyledSpan(f" {thread.comm} {thread.pid}", "strong"),
        StyledSpan(state, "alert" if starving else "plain"),
        StyledSpan(figures),
    )


def _task_line(captured: CapturedTask, width: int) -> Line:
    call = f" in {captured.syscall}" if captured.syscall else ""
    file = f" of {captured.file}" if captured.file else ""
    text = f"{captured.comm} {captured.pid} ({captured.program or MISSING}){call}{file}"
    return fit_line(
        (
            StyledSpan(f" {time_of_day(captured.time_ns)} ", "dim"),
            StyledSpan(f"{captured.trigger}: ", "alarm"),
            StyledSpan(text),
        ),
        width,
    )


def _tasks_and_functions(detail: CoreDetail, width: int, height: int) -> list[Line]:
    """Tasks at the left, functions at the right."""
    left_width = width * 6 // 10 if width >= _WIDE else width // 2
    rows = max(min(max(len(detail.tasks), len(detail.functions)), height - 1), 0)
    title = f" TASKS, {count(detail.samples)} samples in {SAMPLES_S} s"
    lines: list[Line] = [
        (StyledSpan(fit(title, left_width) + fit(" FUNCTIONS", width - left_width), "heading"),)
    ]
    for place in range(rows):
        task = (
            _task(detail.tasks[place], left_width)
            if place < len(detail.tasks)
            else (StyledSpan(" " * left_width),)
        )
        function = _function(detail.functions[place]) if place < len(detail.functions) else ()
        lines.append((*task, *function))
    return lines if detail.samples else [*lines, (StyledSpan(" no sample of this core", "dim"),)]


def _task(task: OnCore, width: int) -> Line:
    who = f"{fit_right(percent(task.share), 5)} {fit(f'{task.comm} {task.pid}', 22)} "
    return fit_line(
        (
            StyledSpan(who),
            StyledSpan(fit_tail(task.cgroup or MISSING, width - len(who) - 1), "dim"),
            StyledSpan(" "),
        ),
        width,
    )


def _function(function: Function) -> Line:
    side = (
        StyledSpan("[k] ", "system-word") if function.in_kernel else StyledSpan("[.] ", "user-word")
    )
    return (
        StyledSpan(f"{fit_right(percent(function.share), 5)} "),
        side,
        StyledSpan(function.name),
    )


def _keys(width: int) -> Line:
    keys = (
        ("↵ esc", "all cores"),
        ("↑ ↓", "other core"),
        ("space", "freeze"),
        ("← →", "time"),
        ("?", "help"),
        ("q", "quit"),
    )
    return key_line(keys, width)
