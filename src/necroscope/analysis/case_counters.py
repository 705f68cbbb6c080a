"""How much: what the counters of an incident's time and core say, compared with those of its quiet
time.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from necroscope.analysis.case_times import BEFORE_NS, TICK_NS, CaseTimes
from necroscope.analysis.columns import ColumnArrays, Floats
from necroscope.analysis.episodes import touches
from necroscope.analysis.node import Node
from necroscope.model.definitions import late_ns
from necroscope.model.reading import Gap
from necroscope.model.span import Span
from necroscope.model.tables import TABLES
from necroscope.model.units import NS_PER_S

# From this part of the incident on, rows cover it although a gap lies over the rest.
_TELLING_PART: Final = 0.4


@dataclass(frozen=True, slots=True)
class Rate:
    """Events per second in the incident and in the quiet time before; None where it was not
    recorded.
    """

    now: float | None
    before: float | None

    @property
    def rise(self) -> float:
        """How many per second more than before; 0 if nothing is known."""
        return max(0.0, (self.now or 0.0) - (self.before or 0.0))

    def grew(self, factor: float, at_least: float = 0.0) -> bool:
        return (
            self.now is not None
            and self.now >= at_least
            and self.now >= factor * (self.before or 0.0)
        )


class CaseCounters:
    """Shares are of elapsed time, rates are per second; None is what was not recorded."""

    def __init__(self, node: Node, times: CaseTimes, core: int | None) -> None:
        self._node = node
        self._times = times
        self._core = core

    def share(self, mode: str, cpu: int | None = None) -> float | None:
        """Of the core's time in the incident: user (with nice), system, irq, softirq, steal, idle,
        iowait, kernel, missing.
        """
        return self._node.mode_share(mode, self._times.spans, self._core if cpu is None else cpu)

    def share_before(self, mode: str, cpu: int | None = None) -> float | None:
        return self._node.mode_share(mode, self._times.quiet, self._core if cpu is None else cpu)

    def machine_share(self, mode: str) -> float | None:
        """The same over all cores."""
        return self._node.mode_share(mode, self._times.spans, None)

    def rate(self, table: str, *columns: str, cpu: int | None = None) -> Rate:
        """Events per second of counters that count since the row before: memory, softirqs, softnet,
        cgroups, pressure, runqueue.
        """
        quiet = self._node.columns(table).of_core(cpu).within(self._times.quiet)
        return Rate(
            self.rows_of(table, self._times.spans).of_core(cpu).per_second(*columns),
            quiet.per_second(*columns) if len(quiet) else None,
        )

    def interrupts(self, name: str, cpu: int | None = None) -> Rate:
        """Interrupts per second of one line of /proc/interrupts (TLB, CAL, RES, LOC, a number), of
        a core or of all.
        """
        now = self.rows_of("interrupts", self._times.spans).of_core(cpu)
        before = self._node.columns("interrupts").of_core(cpu).within(self._times.quiet)
        return Rate(*(self._rate_of_reads(rows.at(rows["irq"] == name)) for rows in (now, before)))

    def pressure(self, resource: str, column: str = "some_ns") -> float | None:
        """Share of the incident's time in which work stalled for lack of cpu, memory or io;
        `full_ns`: all work.
        """
        rows = self.rows_of("pressure", self._times.spans)
        per_second = rows.at(rows["resource"] == resource).per_second(column)
        return None if per_second is None else per_second / NS_PER_S

    def level(self, table: str, column: str) -> float | None:
        """The last known amount at the end of the incident: memory's `free_bytes`, softnet's
        `backlog`.
        """
        values: Floats = self._node.columns(table).within(
            [Span(self._times.window[0] - BEFORE_NS, self._late_ns)]
        )[column]
        known = values[np.isfinite(values)]
        return float(known[-1]) if len(known) else None

    def softirq_delay_s(
        self, vectors: Collection[str] | None = None, cpu: int | None = None
    ) -> float | None:
        """The longest that a raised softirq waited on the core; None if that was not measured."""
        rows = self._node.columns("softirq_delay")
        if not len(rows):
            return None
        rows = rows.of_core(self._core if cpu is None else cpu).within(
            [Span(self._times.window[0], self._late_ns)]
        )
        if vectors is not None:
            rows = rows.at(np.isin(rows["vector"].astype(str), list(vectors)))
        return (
            float(np.fmax(rows["worst_ns"], rows["pending_ns"]).max()) / NS_PER_S
            if len(rows)
            else 0.0
        )

    def thread_wait_share(self, prefix: str = "napi/", cpu: int | None = None) -> float | None:
        """Of the incident's time: how much of it the core's napi (or ksoftirqd) threads were
        runnable and did not run.
        """
        rows = (
            self._node.columns("runqueue")
            .of_core(self._core if cpu is None else cpu)
            .within(self._times.spans)
        )
        rows = rows.at(
            np.array([str(comm).startswith(prefix) for comm in rows["comm"]], dtype=bool)
        )
        elapsed_ns = rows.total("elapsed_ns")
        if not elapsed_ns:
            return None
        # The delay is booked when the wait ends; until then the thread is runnable with unchanged
        # run time.
        is_starving = (rows["state"] == "R") & (rows["run_ns"] == 0)
        waited = np.where(
            is_starving, rows["elapsed_ns"], np.minimum(rows["delay_ns"], rows["elapsed_ns"])
        )
        return float(waited.sum()) / elapsed_ns

    def columns(self, table: str) -> ColumnArrays:
        """All rows of a table, as numpy columns."""
        return self._node.columns(table)

    def is_recorded(self, table: str) -> bool:
        """Whether the recording has the table at all: without it, its silence says nothing."""
        return bool(self._node.tables.get(table))

    def hidden_by(self, table: str) -> str | None:
        """The cause of a gap that hides most of the incident from a table of counters; a late row
        covers the time before.
        """
        causes = [gap.cause for gap in self._gaps if gap.table == table]
        if not causes:
            return None
        rows = self.rows_of(table, self._times.spans).of_core(self._core)
        if not any(column.name == "elapsed_ns" for column in TABLES[table].columns):
            return None if len(rows["time"]) else causes[0]
        _, first = np.unique(rows["time"], return_index=True)
        is_seen = float(rows["elapsed_ns"][first].sum()) >= _TELLING_PART * sum(
            to_ns - from_ns for from_ns, to_ns in self._times.spans
        )
        return None if is_seen else causes[0]

    @cached_property
    def _gaps(self) -> list[Gap]:
        """Those over the incident, on its core or the machine."""
        own = [
            gap
            for gap in self._node.recording.gaps(*self._times.window)
            if gap.to_ns > gap.from_ns and gap.cpu in (None, self._core)
        ]
        return [
            gap
            for gap in own
            if any(touches(span, Span(gap.from_ns, gap.to_ns)) for span in self._times.spans)
        ]

    @property
    def _late_ns(self) -> int:
        """Rows come at the end of a tick, and delays when the wait is over."""
        return self._times.window[1] + 2 * TICK_NS

    def rows_of(self, table: str, spans: Sequence[Span]) -> ColumnArrays:
        """Rows that cover these stretches: a table that is read every 10 s has them late."""
        after_ns = late_ns(TABLES[table])
        return self._node.columns(table).within([Span(a, b + after_ns) for a, b in spans])

    def _rate_of_reads(self, rows: ColumnArrays) -> float | None:
        """Rows of interrupts are by core and only of those that came: the time is that of the
        reads, not of the rows.
        """
        if not self.is_recorded("interrupts"):
            return None
        if not len(rows):
            return 0.0
        times, first = np.unique(rows["time"], return_index=True)
        elapsed_s = float(rows["elapsed_ns"][first].sum()) / NS_PER_S
        return float(rows["count"].sum()) / elapsed_s if len(times) and elapsed_s > 0 else 0.0
