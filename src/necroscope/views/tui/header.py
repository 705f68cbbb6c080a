"""The top of every page: which moment is shown, how all cores spend their time, and what concerns
the node as a whole.
"""

from typing import Final

from necroscope.model.definitions import STALL_NS
from necroscope.model.units import NS_PER_S, format_duration
from necroscope.views.format import MISSING, brief_duration, count, percent, time_of_day
from necroscope.views.tui.line import Line, StyledSpan, fit_line, spread
from necroscope.views.tui.screen import Delay, Modes, Position, Screen, Zombies

# The letter of the bars is the one that stands out in each word.
_LEGEND: Final = {
    "system": "Sys",
    "irq": "Irq",
    "softirq": "softirQ",
    "steal": "sTeal",
    "user": "user",
    "nice": "nice",
    "guest": "guest",
    "iowait": "wait",
    "idle": ".idle",
}
_SILENT_NS: Final = 3 * NS_PER_S
_WIDE: Final = 110


def draw_header(screen: Screen, node: str, width: int, notice_lines: int) -> list[Line]:
    return [
        _title(screen, node, width),
        fit_line(_legend(screen.all_cores, width), width),
        fit_line(_node(screen, width), width),
        *_notices(screen, width, notice_lines),
    ]


def _title(screen: Screen, node: str, width: int) -> Line:
    name = f" {node} " if node else " "
    status = f"{screen.status} "
    return spread(
        (StyledSpan(" necroscope", "title"), StyledSpan(name), *_moment(screen)),
        (StyledSpan(status, "dim"),),
        width,
    )


def _moment(screen: Screen) -> Line:
    if screen.at_ns is None:
        return (StyledSpan(" waiting for the first tick ", "warn"),)
    time = f"{time_of_day(screen.at_ns)} UTC"
    if screen.position is Position.LIVE:
        if screen.silent_ns >= _SILENT_NS:
            return (
                StyledSpan(f" NOTHING NEW for {_whole_seconds(screen.silent_ns)} ", "alert"),
                StyledSpan(f" {time}"),
            )
        return (StyledSpan("live", "good"), StyledSpan(f" {time}"))
    back = f"{_whole_seconds(screen.back_ns)} back"
    oldest = ", the oldest kept" if screen.is_oldest else ""
    return (
        StyledSpan(f" {screen.position.value.upper()} ", "alert"),
        StyledSpan(f" {time}, {back}{oldest}", "strong"),
    )


def _whole_seconds(duration_ns: int) -> str:
    seconds = duration_ns // NS_PER_S
    return format_duration(seconds * NS_PER_S) if seconds else "0 s"


def _legend(modes: Modes | None, width: int) -> Line:
    """Mean over all cores, and at the same time the key to the letters of the bars."""
    spans = [StyledSpan(" all cores  " if width >= _WIDE else " ", "dim")]
    for mode, word in _LEGEND.items():
        share = modes.share_of(mode) if modes else None
        if mode == "guest" and not share:
            continue
        spans += [
            StyledSpan(word, f"{mode}-word"),
            StyledSpan(f" {percent(share)}  " if width >= _WIDE else f" {percent(share)} "),
        ]
    return tuple(spans)


def _node(screen: Screen, width: int) -> Line:
    is_wide = width >= _WIDE
    names = {"memory": "memory" if is_wide else "mem"}
    stalled = [
        f"{names.get(name, name)} {percent(share)}"
        for name, share in screen.pressure.items()
        if name != "irq" or share
    ]
    pressure = StyledSpan("   pressure " if is_wide else "  psi ", "dim")
    between = StyledSpan("   " if is_wide else "  ")
    return (
        StyledSpan(" "),
        *_zombies(screen.zombies, is_wide),
        between,
        *_worst(screen.worst_delay, is_wide),
        pressure,
        StyledSpan(" ".join(stalled)),
    )


def _zombies(zombies: Zombies | None, is_wide: bool) -> Line:
    kind = (
        ("zombie cgroups " if zombies and zombies.controller == "unified" else "zombie memcgs ")
        if is_wide
        else "zombies "
    )
    name = StyledSpan(kind, "dim")
    if zombies is None:
        return (name, StyledSpan(MISSING))
    if zombies.dying is None:
        return (name, StyledSpan(f"{MISSING} of {count(zombies.tracked)}"))
    growth = "" if not zombies.per_minute else f" {zombies.per_minute:+,.0f}/min"
    return (
        name,
        StyledSpan(count(zombies.dying), "strong"),
        StyledSpan(growth, "warn" if growth.startswith(" +") else "plain"),
    )


def _worst(worst: tuple[int, Delay] | None, is_wide: bool) -> Line:
    name = StyledSpan("softirq delay " if is_wide else "delay ", "dim")
    if worst is None:
        return (name, StyledSpan(MISSING))
    cpu, delay = worst
    role = "alert" if delay.worst_ns >= STALL_NS else "plain"
    pending = "+" if delay.is_pending else ""
    return (
        name,
        StyledSpan(f"{brief_duration(delay.worst_ns)}{pending}", role),
        StyledSpan(f" {delay.vector} cpu {cpu}"),
    )


def _notices(screen: Screen, width: int, lines: int) -> list[Line]:
    """What is not recorded and why; those without room are counted."""
    shown = screen.notices[: max(lines, 1)] if lines else ()
    left = len(screen.notices) - len(shown)
    drawn: list[Line] = [
        (StyledSpan(" ! ", "warn"), StyledSpan(notice, "warn")) for notice in shown
    ]
    if drawn and left:
        more = f" (+{left} more: ?) "
        drawn[-1] = (*fit_line(drawn[-1], width - len(more)), StyledSpan(more, "strong"))
    return [fit_line(line, width) for line in drawn]
