"""Thinks for the live view: from the rows in memory and where the user looks, what to show. No
clock, no drawing.
"""

from typing import Final

from necroscope.model.names import LINE_LIMIT
from necroscope.model.top_source import TopSource
from necroscope.model.units import NS_PER_S
from necroscope.views.format import literal
from necroscope.views.tui.core_detail import core_detail
from necroscope.views.tui.core_model import cores_at, mean_modes, rank, with_tasks_and_past
from necroscope.views.tui.look import Look
from necroscope.views.tui.node_model import happenings, pressure, zombies
from necroscope.views.tui.screen import CoreOrder, Delay, Screen, ScreenCore
from necroscope.views.tui.ticks import fresh_ns, last_read, tick_of

# With more cores than this a list in core order hides the hot ones below its end.
MANY_CORES: Final = 16
OVERVIEW_S: Final = 30
ALL_CORES: Final = 1 << 20
DETAIL_S: Final = 180


def build(source: TopSource, look: Look, silent_ns: int = 0, looked_at: int = ALL_CORES) -> Screen:
    """The screen for the moment looked at; `silent_ns` is for how long nothing new has come.

    `looked_at` is for how many cores on both sides of the selected one, in their order, there is
    room to say who is on them.
    """
    span = source.span()
    if span is None:
        return _waiting(source, look, silent_ns)
    at_ns = look.moment(span)
    seconds = DETAIL_S if look.is_detail else OVERVIEW_S
    recent = source.rows("cores", at_ns - seconds * NS_PER_S, at_ns)
    gaps = source.rows("gaps", 0, at_ns)
    tick_ns = tick_of(recent)
    cores = cores_at(source, recent, gaps, at_ns)
    sort = look.sort or _default_sort(cores)
    cores.sort(key=lambda core: rank(core, sort))
    selected = look.cpu if any(core.cpu == look.cpu for core in cores) else None
    wanted = set() if look.is_detail else _window_around(cores, selected, looked_at)
    return Screen(
        position=look.position,
        at_ns=at_ns,
        back_ns=span[1] - at_ns,
        is_oldest=at_ns == span[0],
        silent_ns=silent_ns,
        sort=sort,
        selected=selected,
        cores=with_tasks_and_past(source, cores, recent, at_ns, seconds, wanted),
        all_cores=mean_modes([core.modes for core in cores if core.modes]),
        worst_delay=_worst_delay(cores),
        zombies=zombies(source, at_ns),
        pressure=pressure(
            last_read(source.rows("pressure", at_ns - fresh_ns(tick_ns), at_ns), at_ns, tick_ns)
        ),
        happenings=happenings(source.rows("events", 0, at_ns), gaps),
        detail=core_detail(source, selected, recent, at_ns, seconds)
        if look.is_detail and selected is not None
        else None,
        notices=tuple(literal(notice, LINE_LIMIT) for notice in source.notices()),
        status=literal(source.status()),
    )


def _waiting(source: TopSource, look: Look, silent_ns: int) -> Screen:
    """Nothing has been read yet."""
    return Screen(
        position=look.position,
        at_ns=None,
        back_ns=0,
        is_oldest=False,
        silent_ns=silent_ns,
        sort=look.sort or CoreOrder.CPU,
        selected=None,
        cores=(),
        all_cores=None,
        worst_delay=None,
        zombies=None,
        pressure=pressure([]),
        happenings=(),
        detail=None,
        notices=tuple(literal(notice, LINE_LIMIT) for notice in source.notices()),
        status=literal(source.status()),
    )


def _window_around(cores: list[ScreenCore], selected: int | None, count: int) -> set[int]:
    place = next((place for place, core in enumerate(cores) if core.cpu == selected), 0)
    return {core.cpu for core in cores[max(0, place - count) : place + count]}


def _default_sort(cores: list[ScreenCore]) -> CoreOrder:
    return CoreOrder.CPU if len(cores) <= MANY_CORES else CoreOrder.SYSTEM


def _worst_delay(cores: list[ScreenCore]) -> tuple[int, Delay] | None:
    waited = [(core.cpu, core.delay) for core in cores if core.delay]
    return max(waited, key=lambda pair: pair[1].worst_ns, default=None)
