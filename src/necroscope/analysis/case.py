"""The case of one incident: all figures that causes ask for, of its time and core, beside those of the quiet time before."""

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from necroscope.analysis.attribution import culprit_of
from necroscope.analysis.columns import Columns, Floats
from necroscope.analysis.correlate import Gathered, JoinedEvent
from necroscope.analysis.differential import Differential, compared
from necroscope.analysis.episodes import Episode, Kind, Span, joined, outside
from necroscope.analysis.functions import Functions
from necroscope.analysis.node import MODES, Node
from necroscope.analysis.periodicity import period_of_starts
from necroscope.analysis.report import Culprit, Evidence
from necroscope.analysis.stacks import INTERRUPT, Stacks
from necroscope.model.units import NS_PER_S

# How far back the quiet time is looked for, and how much of the incident is looked at: what bounds memory.
BEFORE_NS: Final = 120 * NS_PER_S
MACHINE_BEFORE_NS: Final = 20 * NS_PER_S
LOOKED_AT_NS: Final = 30 * NS_PER_S
# Weak candidates are many and mostly nothing: less of them is looked at.
WEAK_BEFORE_NS: Final = 40 * NS_PER_S
WEAK_LOOKED_AT_NS: Final = 12 * NS_PER_S
_TICK_NS: Final = NS_PER_S
_MOSTLY: Final = 0.4
_FEW_CORES: Final = 4


@dataclass(frozen=True, slots=True)
class Rate:
    """Events a second in the incident and in the quiet time before; None where it was not recorded."""

    now: float | None
    before: float | None

    @property
    def rise(self) -> float:
        """How many a second more than before; 0 if nothing is known."""
        return max(0.0, (self.now or 0.0) - (self.before or 0.0))

    def grew(self, factor: float, at_least: float = 0.0) -> bool:
        return self.now is not None and self.now >= at_least and self.now >= factor * (self.before or 0.0)


class Case:
    """`now` and `before` are samples of the incident's core, `machine` and `machine_before` of all cores."""

    def __init__(self, node: Node, gathered: Gathered) -> None:
        self.node = node
        self.gathered = gathered
        self.window: Span = gathered.span
        self.core: int | None = gathered.core
        self.episodes: tuple[Episode, ...] = gathered.episodes
        self.is_asked: bool = gathered.is_asked
        self._before_ns = BEFORE_NS if gathered.is_strong else WEAK_BEFORE_NS
        self._looked_at_ns = LOOKED_AT_NS if gathered.is_strong else WEAK_LOOKED_AT_NS
        self.mode: str | None = gathered.mode or self._main_mode()
        self.events: tuple[JoinedEvent, ...] = gathered.events

    # --- when

    @property
    def seconds(self) -> float:
        """How long it lasted on its core, the time between its episodes left out."""
        return sum(to_ns - from_ns for from_ns, to_ns in self.spans) / NS_PER_S

    @cached_property
    def spans(self) -> list[Span]:
        """The stretches that are looked at: episodes on the core, the strongest first until there is enough, in order of time."""
        own = [e for e in self.episodes if e.cpu == self.core] or list(self.episodes)
        best = [e for e in own if e.is_strong] or own
        active = [e for e in best if e.kind in _ACTIVE and e.mode == self.gathered.mode] or best
        wanted = sorted(active, key=lambda episode: -episode.weight)
        if not wanted:
            return [self._first_part(self.window)]
        found: list[Span] = []
        for episode in wanted:
            if sum(b - a for a, b in joined(found)) < self._looked_at_ns:
                found.append(self._first_part(episode.span))
        return joined(found)

    @cached_property
    def quiet(self) -> list[Span]:
        """Stretches of the core without any episode, before the incident, or after it if nothing was recorded before."""
        first_ns, last_ns = self.node.span
        # A core that computes in user mode all day is what the incident is compared with.
        usual = set() if self.mode == "user" else {Kind.USER_BUSY}
        busy = [e.span for e in self.node.episodes if e.cpu in (self.core, None) and e.kind not in usual]
        holes = [(a - _TICK_NS, b + _TICK_NS) for a, b in joined([*busy, self.window])]
        before = outside((max(first_ns, self.window[0] - self._before_ns), self.window[0]), holes)
        after = outside((self.window[1], min(last_ns, self.window[1] + self._before_ns)), holes)
        long_enough = [span for span in before if span[1] - span[0] >= _TICK_NS]
        return long_enough or [span for span in after if span[1] - span[0] >= _TICK_NS]

    @cached_property
    def period_s(self) -> float | None:
        """How often such episodes come on this core, if they come regularly."""
        alike = [e for e in self.node.episodes if e.cpu == self.core and e.mode == self.mode and e.kind in _ACTIVE]
        return period_of_starts([(episode.from_ns + episode.to_ns) // 2 for episode in alike])

    # --- what the samples say

    @cached_property
    def now(self) -> Stacks:
        """What ran on the core in the incident; of an incident without a core, on all cores."""
        if self.core is None:
            return self.machine
        return self._core_samples.where([self.core], self.spans)

    @cached_property
    def before(self) -> Stacks:
        """What ran on the core in quiet time."""
        if self.core is None:
            return self.machine_before
        return self._core_samples.where([self.core], self.quiet)

    @cached_property
    def machine(self) -> Stacks:
        """What ran on all cores in the incident."""
        return self._machine_samples.where(None, self.spans, self.node.cores)

    @cached_property
    def elsewhere(self) -> Stacks:
        """What ran on the other cores in the incident."""
        others = [cpu for cpu in self.node.cpus if cpu != self.core]
        return self._machine_samples.where(others, self.spans)

    @cached_property
    def machine_before(self) -> Stacks:
        """What ran on all cores in quiet time."""
        return self._machine_samples.where(None, self._machine_quiet, self.node.cores)

    def culprit(self, group: Functions | None = None, inside: Functions | None = None) -> Culprit | None:
        """Who was in these functions on the core, else on the machine; without a group: whose weight rose most on the core."""
        found = culprit_of(self.now, self.before, self.node, group, inside, is_interrupt=self.mode in ("softirq", "irq"))
        if found is None and self.core is not None and group is not None:
            return culprit_of(self.machine, self.machine_before, self.node, group, inside, is_interrupt=False)
        return found

    @cached_property
    def differential(self) -> Differential:
        """Paths that came and went on the core, beside quiet time."""
        return compared(self.now, self.before)

    @property
    def interrupt_share(self) -> float:
        """Of what ran on the core: interrupts and softirqs."""
        return self.now.share(INTERRUPT)

    # --- what the counters say

    def share(self, mode: str, cpu: int | None = None) -> float | None:
        """Of the core's time in the incident: user (with nice), system, irq, softirq, steal, idle, iowait, kernel, missing."""
        return self._mode_share(mode, self.spans, self.core if cpu is None else cpu)

    def share_before(self, mode: str, cpu: int | None = None) -> float | None:
        return self._mode_share(mode, self.quiet, self.core if cpu is None else cpu)

    def machine_share(self, mode: str) -> float | None:
        """The same over all cores."""
        return self._mode_share(mode, self.spans, None)

    def rate(self, table: str, *columns: str, cpu: int | None = None) -> Rate:
        """Events a second of counters that count since the row before: memory, softirqs, softnet, cgroups, pressure, runqueue."""
        rows = self.node.columns(table).of_core(cpu)
        quiet = rows.within(self.quiet)
        return Rate(rows.within(self._ticks(table)).per_second(*columns), quiet.per_second(*columns) if len(quiet) else None)

    def interrupts(self, name: str, cpu: int | None = None) -> Rate:
        """Interrupts a second of one line of /proc/interrupts (TLB, CAL, RES, LOC, a number), of a core or of all."""
        rows = self.node.columns("interrupts").of_core(cpu)
        rows = rows.at(rows["irq"] == name)
        return Rate(self._counted(rows.within(self._ticks("interrupts"))), self._counted(rows.within(self.quiet)))

    def pressure(self, resource: str, column: str = "some_ns") -> float | None:
        """Share of the incident's time in which work stalled for want of cpu, memory or io; `full_ns`: all work."""
        rows = self.node.columns("pressure")
        per_second = rows.at(rows["resource"] == resource).within(self._ticks("pressure")).per_second(column)
        return None if per_second is None else per_second / NS_PER_S

    def level(self, table: str, column: str) -> float | None:
        """The last known amount at the end of the incident: memory's `free_bytes`, softnet's `backlog`."""
        values: Floats = self.node.columns(table).within([(self.window[0] - BEFORE_NS, self._late_ns)])[column]
        known = values[np.isfinite(values)]
        return float(known[-1]) if len(known) else None

    def softirq_delay_s(self, vectors: Collection[str] | None = None, cpu: int | None = None) -> float | None:
        """The longest that a raised softirq waited on the core; None if that was not measured."""
        rows = self.node.columns("softirq_delay")
        if not len(rows):
            return None
        rows = rows.of_core(self.core if cpu is None else cpu).within([(self.window[0], self._late_ns)])
        if vectors is not None:
            rows = rows.at(np.isin(rows["vector"].astype(str), list(vectors)))
        return float(np.fmax(rows["worst_ns"], rows["pending_ns"]).max()) / NS_PER_S if len(rows) else 0.0

    def thread_wait_share(self, prefix: str = "napi/", cpu: int | None = None) -> float | None:
        """Of the incident's time: how much of it the core's napi (or ksoftirqd) threads were runnable and did not run."""
        rows = self.node.columns("runqueue").of_core(self.core if cpu is None else cpu).within(self.spans)
        rows = rows.at(np.array([str(comm).startswith(prefix) for comm in rows["comm"]], dtype=bool))
        elapsed_ns = rows.total("elapsed_ns")
        if not elapsed_ns:
            return None
        # The delay is booked when the wait ends; until then the thread is runnable with unchanged run time.
        is_starving = (rows["state"] == "R") & (rows["run_ns"] == 0)
        waited = np.where(is_starving, rows["elapsed_ns"], np.minimum(rows["delay_ns"], rows["elapsed_ns"]))
        return float(waited.sum()) / elapsed_ns

    # --- rows as they are

    def rows(self, table: str, before_s: float = 0, after_s: float = 2) -> list[dict[str, Any]]:
        """Rows of any table around the incident, as dictionaries."""
        span = self.window[0] - round(before_s * NS_PER_S), self.window[1] + round(after_s * NS_PER_S)
        found: list[dict[str, Any]] = self.node.recording.rows(table, *span).to_pylist()
        return found

    def columns(self, table: str) -> Columns:
        """All rows of a table, as numpy columns."""
        return self.node.columns(table)

    @cached_property
    def tasks(self) -> list[dict[str, Any]]:
        """Rows of `tasks` of the core, captured in the incident by a trigger: policy, cpus_allowed, syscall, file, stack."""
        return [row for row in self.rows("tasks") if self.core is None or row["cpu"] == self.core]

    def events_of(self, *kinds: str) -> list[JoinedEvent]:
        return [event for event in self.events if event.kind in kinds]

    def has(self, *kinds: Kind) -> bool:
        """Whether such an episode belongs to the incident, on its core or the machine."""
        return any(episode.kind in kinds and episode.cpu in (self.core, None) for episode in self.episodes)

    def is_recorded(self, table: str) -> bool:
        """Whether the recording has the table at all: without it, its silence says nothing."""
        return bool(self.node.tables.get(table))

    def seen(self, text: str, table: str | None = None, cpu: int | None = None, span: Span | None = None) -> Evidence:
        """A piece of evidence; without a stretch of its own it speaks of the incident."""
        from_ns, to_ns = span or self.window
        return Evidence(text, from_ns, to_ns, cpu, table)

    # --- inner

    @cached_property
    def _core_samples(self) -> Stacks:
        reach = joined([*self.spans, *self.quiet])
        # On few cores one read tells all there is.
        cpus = [self.core] if self.core is not None and self.node.cores > _FEW_CORES else None
        return self.node.stacks((reach[0][0], reach[-1][1]), cpus)

    @cached_property
    def _machine_samples(self) -> Stacks:
        if self.node.cores <= _FEW_CORES:
            return self._core_samples
        reach = joined([*self.spans, *self._machine_quiet])
        return self.node.stacks((reach[0][0], reach[-1][1]), None)

    @property
    def _machine_quiet(self) -> list[Span]:
        last = self.quiet[-1] if self.quiet else None
        return [(max(last[0], last[1] - MACHINE_BEFORE_NS), last[1])] if last else []

    def _first_part(self, span: Span) -> Span:
        return span[0], min(span[1], span[0] + self._looked_at_ns)

    @property
    def _late_ns(self) -> int:
        """Rows come at the end of a tick, and delays when the wait is over."""
        return self.window[1] + 2 * _TICK_NS

    def _ticks(self, table: str) -> list[Span]:
        """Stretches wide enough to hold rows of the table: those that are read every 10 s come late."""
        late_ns = 11 * NS_PER_S if table in ("interrupts", "cgroups", "nics") else _TICK_NS // 2
        return [(from_ns, to_ns + late_ns) for from_ns, to_ns in self.spans]

    def _main_mode(self) -> str | None:
        """Where no episode tells it: the mode the core was in most of the time."""
        if self.core is None:
            return None
        shares = {mode: self.share(mode) or 0.0 for mode in ("system", "softirq", "irq", "steal", "user")}
        best = max(shares, key=lambda mode: shares[mode])
        return best if shares[best] >= _MOSTLY else None

    def _mode_share(self, mode: str, spans: list[Span], cpu: int | None) -> float | None:
        own = self.node.columns("cores").of_core(cpu)
        # Of a stretch shorter than a tick the tick in which it ends tells.
        rows = own.within(spans) if len(own.within(spans)) else own.within([(a, b + _TICK_NS) for a, b in spans])
        elapsed_ns = rows.total("elapsed_ns")
        if not elapsed_ns:
            return None
        booked_ns = rows.total(*(MODES[mode] if mode != "missing" else MODES["all"])) or 0.0
        return max(0.0, 1 - booked_ns / elapsed_ns) if mode == "missing" else min(1.0, booked_ns / elapsed_ns)

    def _counted(self, rows: Columns) -> float | None:
        """Rows of interrupts are by core and only of those that came: the time is that of the reads, not of the rows."""
        if not self.is_recorded("interrupts"):
            return None
        if not len(rows):
            return 0.0
        times, first = np.unique(rows["time"], return_index=True)
        elapsed_s = float(rows["elapsed_ns"][first].sum()) / NS_PER_S
        return float(rows["count"].sum()) / elapsed_s if len(times) and elapsed_s > 0 else 0.0


_ACTIVE: Final = frozenset({Kind.SATURATED, Kind.ELEVATED, Kind.USER_BUSY})
