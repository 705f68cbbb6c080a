"""The recent past of one core: each mode and the softirq delay by second, tasks and functions of
the last seconds.
"""

from operator import itemgetter
from typing import Final

from necroscope.model.reading import Row, Rows
from necroscope.model.tables import SOFTIRQ_VECTORS, TABLES
from necroscope.model.top_source import TopSource
from necroscope.model.units import NS_PER_S
from necroscope.views.format import literal
from necroscope.views.tui.on_core import functions_of, tasks_by_cpu
from necroscope.views.tui.screen import MODES, CapturedTask, CoreDetail, ScreenThread
from necroscope.views.tui.ticks import (
    CPU,
    TIME,
    by_second,
    core_rows,
    fresh_ns,
    last_read,
    mode_ns_of,
    number,
    optional,
    seconds_of,
    shares,
    tick_of,
)

SAMPLES_S: Final = 10
_LISTED: Final = 12
_CAPTURED: Final = 5

_WORST, _PENDING = map(TABLES["softirq_delay"].index_of, ("worst_ns", "pending_ns"))
_FIRST_VECTOR: Final = TABLES["softirqs"].index_of(SOFTIRQ_VECTORS[0])
_RUN = {column.name: index for index, column in enumerate(TABLES["runqueue"].columns)}
_TASK = {column.name: index for index, column in enumerate(TABLES["tasks"].columns)}


def core_detail(source: TopSource, cpu: int, recent: Rows, at_ns: int, seconds: int) -> CoreDetail:
    tick_ns = tick_of(recent)
    own = by_second(core_rows(_of_core(recent, cpu)), at_ns, seconds)
    samples = [
        sample
        for sample in source.samples_between(at_ns - SAMPLES_S * NS_PER_S, at_ns)
        if sample.cpu == cpu
    ]
    since_ns = at_ns - fresh_ns(tick_ns)
    softirqs = last_read(_of_core(source.rows("softirqs", since_ns, at_ns), cpu), at_ns, tick_ns)
    threads = last_read(_of_core(source.rows("runqueue", since_ns, at_ns), cpu), at_ns, tick_ns)
    return CoreDetail(
        cpu=cpu,
        mode_history={mode: shares(own, mode_ns_of(mode)) for mode in MODES},
        delay_history_ns=_delay_history(source, cpu, at_ns, seconds, tick_ns),
        tasks=tasks_by_cpu(samples, _LISTED).get(cpu, ()),
        functions=functions_of(samples, _LISTED),
        samples=len(samples),
        softirqs=_softirqs(softirqs[-1]) if softirqs else {},
        threads=tuple(_thread(row) for row in threads),
        captured=tuple(
            _to_task(row)
            for row in reversed(_of_core(source.rows("tasks", 0, at_ns), cpu)[-_CAPTURED:])
        ),
    )


def _of_core(rows: Rows, cpu: int) -> Rows:
    return [row for row in rows if row[CPU] == cpu]


def _delay_history(
    source: TopSource, cpu: int, at_ns: int, seconds: int, tick_ns: int
) -> tuple[int | None, ...]:
    """The longest wait in each second; 0 where waits were measured but this core had none, None
    where nothing was measured.
    """
    origin_ns = at_ns - seconds * NS_PER_S
    rows = source.rows("softirq_delay", origin_ns, at_ns)
    worst_ns: dict[int, int] = dict.fromkeys(
        sorted(map(number, set(map(itemgetter(TIME), rows)))), 0
    )
    for row in _of_core(rows, cpu):
        time_ns = number(row[TIME])
        worst_ns[time_ns] = max(worst_ns[time_ns], number(row[_WORST]), number(row[_PENDING]))
    history: list[int | None] = [None] * seconds
    before_ns = origin_ns
    for time_ns, wait_ns in worst_ns.items():
        elapsed_ns = time_ns - before_ns if time_ns - before_ns <= fresh_ns(tick_ns) else tick_ns
        for second in seconds_of(time_ns, elapsed_ns, origin_ns, seconds):
            history[second] = max(history[second] or 0, wait_ns)
        before_ns = time_ns
    return tuple(history)


def _softirqs(row: Row) -> dict[str, int | None]:
    return {
        vector: optional(row[_FIRST_VECTOR + index]) for index, vector in enumerate(SOFTIRQ_VECTORS)
    }


def _thread(row: Row) -> ScreenThread:
    elapsed_ns = max(number(row[_RUN["elapsed_ns"]]), 1)
    return ScreenThread(
        literal(str(row[_RUN["comm"]])),
        number(row[_RUN["pid"]]),
        literal(str(row[_RUN["state"]])),
        number(row[_RUN["run_ns"]]) / elapsed_ns,
        number(row[_RUN["delay_ns"]]) / elapsed_ns,
    )


def _to_task(row: Row) -> CapturedTask:
    def text(column: str) -> str | None:
        value = row[_TASK[column]]
        return None if value is None else literal(str(value))

    return CapturedTask(
        number(row[TIME]),
        text("trigger") or "",
        text("comm") or "",
        number(row[_TASK["pid"]]),
        number(row[_TASK["samples"]]),
        text("argv0"),
        text("syscall"),
        text("file"),
    )
