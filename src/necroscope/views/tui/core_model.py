"""Each core at a moment: its modes, how long softirqs waited there, who was on it, and why
something is missing.
"""

from dataclasses import replace
from operator import itemgetter
from typing import Final

from necroscope.model.definitions import BUSY_RATIO, ORDINARY, STALL_NS
from necroscope.model.reading import Rows
from necroscope.model.tables import SOFTIRQ_VECTORS, TABLES
from necroscope.model.top_source import TopSource
from necroscope.model.units import NS_PER_S
from necroscope.views.format import literal
from necroscope.views.tui.on_core import tasks_by_cpu
from necroscope.views.tui.screen import CoreOrder, Delay, Modes, ScreenCore
from necroscope.views.tui.ticks import (
    CPU,
    CoreRow,
    busy_ns_of,
    by_second,
    core_rows,
    fresh_ns,
    last_read,
    modes_of,
    number,
    shares,
    tick_of,
)

TASKS_PER_CORE: Final = 3

_VECTOR, _WORST, _PENDING = map(
    TABLES["softirq_delay"].index_of, ("vector", "worst_ns", "pending_ns")
)
_FIRST_VECTOR: Final = TABLES["softirqs"].index_of(SOFTIRQ_VECTORS[0])
_STATE, _RUN = map(TABLES["runqueue"].index_of, ("state", "run_ns"))
_WAIT: Final = itemgetter(
    *map(
        TABLES["waits"].index_of,
        ("kind", "cpu", "comm", "policy", "priority", "waited_ns", "is_open"),
    )
)
_GAP_END, _GAP_TABLE, _GAP_CAUSE, _GAP_CPU = map(
    TABLES["gaps"].index_of, ("end", "table", "cause", "cpu")
)


def cores_at(source: TopSource, recent: Rows, gaps: Rows, at_ns: int) -> list[ScreenCore]:
    """Every core with a row among the recent ones; one without a row now stays, with the reason as
    far as it is known.

    Who is on it and its past are left to `with_tasks_and_past`, which asks for the cores that are
    looked at.
    """
    tick_ns = tick_of(recent)
    modes = {row[CPU]: modes_of(row) for row in core_rows(last_read(recent, at_ns, tick_ns))}
    delays = delays_of(_read(source, "softirq_delay", at_ns, tick_ns))
    notes = {} if delays else _softirq_notes(source, modes, at_ns, tick_ns)
    waits = task_waits_of(source.rows("waits", at_ns - fresh_ns(tick_ns), at_ns))
    return [
        ScreenCore(
            cpu=cpu,
            modes=modes.get(cpu),
            missing=None if cpu in modes else _missing(cpu, gaps, at_ns - fresh_ns(tick_ns)),
            delay=delays.get(cpu),
            softirq_note=notes.get(cpu),
            on=(),
            busy_history=(),
            task_wait=waits.get(cpu),
        )
        for cpu in sorted(set(map(itemgetter(CPU), core_rows(recent))))
    ]


def rank(core: ScreenCore, sort: CoreOrder) -> tuple[float, ...]:
    """Smaller is higher up; a core of which nothing is known comes last."""
    if sort is CoreOrder.CPU:
        return (core.cpu,)
    busy, kernel = (core.modes.busy, core.modes.kernel) if core.modes else (-1.0, -1.0)
    delay_ns = core.delay.worst_ns if core.delay else -1
    # Whole percents, so that cores that differ by a tick's jitter keep their places.
    figures = {
        CoreOrder.BUSY: (busy, kernel),
        CoreOrder.SYSTEM: (kernel, busy),
        CoreOrder.DELAY: (delay_ns, kernel),
    }[sort]
    return (*(-round(figure, 2) for figure in figures), core.cpu)


def with_tasks_and_past(
    source: TopSource,
    cores: list[ScreenCore],
    recent: Rows,
    at_ns: int,
    seconds: int,
    wanted: set[int],
) -> tuple[ScreenCore, ...]:
    """The wanted cores with who is on them and their past; for all of a large machine that would
    cost more than all the rest.
    """
    samples = (
        source.samples_between(at_ns - max(tick_of(recent), NS_PER_S), at_ns) if wanted else []
    )
    tasks = tasks_by_cpu((sample for sample in samples if sample.cpu in wanted), TASKS_PER_CORE)
    rows: dict[int, list[CoreRow]] = {cpu: [] for cpu in wanted}
    for row in core_rows(recent):
        if row[CPU] in wanted:
            rows[row[CPU]].append(row)
    return tuple(
        replace(
            core,
            on=tasks.get(core.cpu, ()),
            busy_history=shares(by_second(rows[core.cpu], at_ns, seconds), busy_ns_of),
        )
        if core.cpu in wanted
        else core
        for core in cores
    )


def delays_of(rows: Rows) -> dict[int, Delay]:
    """The longest wait on each core, over all vectors."""
    worst: dict[int, Delay] = {}
    for row in rows:
        cpu, ended_ns, pending_ns = number(row[CPU]), number(row[_WORST]), number(row[_PENDING])
        wait_ns = max(ended_ns, pending_ns)
        if cpu not in worst or wait_ns > worst[cpu].worst_ns:
            worst[cpu] = Delay(
                wait_ns, str(row[_VECTOR]), pending_ns >= ended_ns and pending_ns > 0
            )
    return worst


def task_waits_of(rows: Rows) -> dict[int, Delay]:
    """The longest wait of an ordinary task for each core, if it was long."""
    worst: dict[int, Delay] = {}
    for row in rows:
        kind, cpu, comm, policy, priority, waited_ns, is_open = _WAIT(row)
        is_ordinary = policy in ORDINARY and priority <= 0
        least_ns = worst[cpu].worst_ns + 1 if cpu in worst else STALL_NS
        if kind == "runnable" and is_ordinary and waited_ns >= least_ns:
            worst[cpu] = Delay(waited_ns, str(comm), bool(is_open))
    return worst


def mean_modes(all_modes: list[Modes]) -> Modes | None:
    if not all_modes:
        return None
    return Modes(
        tuple(
            sum(shares) / len(all_modes)
            for shares in zip(*(modes.shares for modes in all_modes), strict=True)
        )
    )


def _read(source: TopSource, table: str, at_ns: int, tick_ns: int) -> Rows:
    return last_read(source.rows(table, at_ns - fresh_ns(tick_ns), at_ns), at_ns, tick_ns)


def _softirq_notes(
    source: TopSource, modes: dict[int, Modes], at_ns: int, tick_ns: int
) -> dict[int, str]:
    """Without the measured wait: a thread that is runnable and gets no time, or a busy core on
    which no softirq ran at all.
    """
    notes = {}
    for row in _read(source, "runqueue", at_ns, tick_ns):
        if row[_STATE] == "R" and not row[_RUN]:
            notes[number(row[CPU])] = "starving"
    for row in _read(source, "softirqs", at_ns, tick_ns):
        cpu, counts = (
            number(row[CPU]),
            [count for count in row[_FIRST_VECTOR:] if count is not None],
        )
        if counts and not any(counts) and cpu in modes and modes[cpu].busy >= BUSY_RATIO:
            notes[cpu] = "frozen"
    return notes


def _missing(cpu: int, gaps: Rows, since_ns: int) -> str:
    """The newest gap that speaks of this core, or that spoke of all cores at this time."""
    for row in reversed(gaps):
        if row[_GAP_TABLE] in ("cores", "*"):
            is_now = number(row[_GAP_END]) >= since_ns
            if row[_GAP_CPU] == cpu or (row[_GAP_CPU] is None and is_now):
                return literal(str(row[_GAP_CAUSE]))
    return "no row was recorded"
