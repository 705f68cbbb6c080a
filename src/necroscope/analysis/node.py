"""What is known of the node over the stretch under analysis: each table is read once, samples only
where they are asked for.
"""

from collections.abc import Collection, Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np

from necroscope.analysis.columns import ColumnArrays, read
from necroscope.analysis.core_time import MODES, CoreShares, core_shares
from necroscope.analysis.device_counters import CounterRise, read_rises
from necroscope.analysis.episodes import Episode
from necroscope.analysis.functions import shared_names
from necroscope.analysis.late_beats import LateBeat, late_beats
from necroscope.analysis.recording import Recording
from necroscope.analysis.recreations import (
    DEATH,
    MADE,
    START,
    RecreationLoop,
    find_loops,
    names_of,
)
from necroscope.analysis.sampled_cores import cores_from_samples
from necroscope.analysis.stacks import Stacks, stacks_of
from necroscope.analysis.task_waits import TaskWait, task_waits
from necroscope.model.definitions import LONGEST_SEGMENT_NS
from necroscope.model.span import Span
from necroscope.model.tables import TABLES
from necroscope.model.units import NS_PER_S
from necroscope.stacks.samples import numbers, sample_period_ns, stored_period_ns

# Texts and lists that no rule looks at in bulk; `rows` has them.
_LEFT_OUT: Final = frozenset({"histogram", "lines"})
_TELLING: Final = ("events", "softirqs", "runqueue", "pressure", "memory", "cgroups")
_BY_CORE: Final = frozenset({"cores", "softirqs", "softnet", "softirq_delay", "runqueue"})


class Node:
    """One stretch of a recording. `episodes` are all that were found in it; they are set once, by
    the engine.
    """

    def __init__(self, recording: Recording, span: Span) -> None:
        self.recording = recording
        self.span = span
        self.names = shared_names()
        self.episodes: Sequence[Episode] = ()
        # How often and how long sections of the kernel ran: what `walk_history` has read.
        self.turns: dict[object, Any] = {}
        info = recording.info()
        self.schema, self.name = info.schema, info.node
        self.tables = dict(info.tables)
        self._known_cpus = info.cpus
        whole_ns = max(1, (info.to_ns or 0) - (info.from_ns or 0))
        self._part = min(1.0, (span[1] - span[0]) / whole_ns)
        self._columns: dict[str, ColumnArrays] = {}

    @cached_property
    def cpus(self) -> list[int]:
        """Core numbers seen; on some machines they have holes."""
        seen = np.unique(self.columns("cores")["cpu"])
        return [int(cpu) for cpu in seen] or list(range(self._known_cpus or 1))

    @property
    def cores(self) -> int:
        return len(self.cpus)

    @cached_property
    def has_core_times(self) -> bool:
        """Whether the time of cores was recorded and can be read, and is not only estimated from
        samples.
        """
        return bool(len(self._recorded_cores))

    @property
    def is_blank(self) -> bool:
        """Whether nothing can be read here of how the node was: neither cores nor samples, nor what
        was logged.
        """
        return not len(self.columns("cores")) and not any(
            len(self.columns(table)) for table in _TELLING
        )

    def expected_rows(self, table: str) -> int:
        """About how many rows the stretch has, known before they are read."""
        return round(self.tables.get(table, 0) * self._part)

    def columns(self, table: str) -> ColumnArrays:
        """All rows of a table in the stretch; those by core are sorted by core, then time."""
        if table not in self._columns:
            self._columns[table] = self._read(table)
        return self._columns[table]

    def rows(self, table: str, span: Span) -> list[dict[str, Any]]:
        """Rows of any table as dictionaries, with the texts and lists that no rule reads in
        bulk.
        """
        found: list[dict[str, Any]] = self.recording.rows(table, *span).to_pylist()
        return found

    @cached_property
    def waits(self) -> tuple[TaskWait, ...]:
        """Those that count, in order of time."""
        return task_waits(self.columns("waits"))

    @cached_property
    def recreations(self) -> tuple[RecreationLoop, ...]:
        """Containers that were removed and re-created, the most often first: to be asked of one
        whose cgroups died again and again.
        """
        return tuple(find_loops(self._container_events, least_lives=2))

    @cached_property
    def started_containers(self) -> dict[str, str]:
        """The names of containers that were started, by their ids: one that lived between two looks
        is in no other table.
        """
        return names_of(self._container_events)

    @cached_property
    def _container_events(self) -> list[dict[str, Any]]:
        """Who makes them is reported once per segment, which may have begun before the stretch."""
        earlier = self.rows("events", Span(self.span[0] - LONGEST_SEGMENT_NS, self.span[1]))
        return [
            row
            for row in earlier
            if row["kind"] == MADE
            or (row["kind"] in (START, DEATH) and row["time"] >= self.span[0])
        ]

    @cached_property
    def late_beats(self) -> tuple[LateBeat, ...]:
        """Threads that kept a rhythm and were late, in order of time."""
        return late_beats(self.columns("late_beats"), self.waits)

    @cached_property
    def device_rises(self) -> tuple[CounterRise, ...]:
        """What network devices counted that reports trouble, in order of time."""
        return tuple(read_rises(self.recording, self.span))

    @cached_property
    def core_shares(self) -> CoreShares:
        return core_shares(self.columns("cores"))

    def mode_share(self, mode: str, spans: Sequence[Span], cpu: int | None) -> float | None:
        """Of the time of a core, or of all: how much of it was in a mode; `missing` is what no
        mode accounts for.
        """
        own = self.columns("cores").of_core(cpu)
        # Of a stretch shorter than a tick the tick in which it ends tells.
        rows = own.within(spans)
        rows = rows if len(rows) else own.within([Span(a, b + NS_PER_S) for a, b in spans])
        elapsed_ns = rows.total("elapsed_ns")
        if not elapsed_ns:
            return None
        booked = (rows.total(*MODES["all" if mode == "missing" else mode]) or 0.0) / elapsed_ns
        return max(0.0, 1 - booked) if mode == "missing" else min(1.0, booked)

    def stacks(self, span: Span, cpus: Collection[int] | None) -> Stacks:
        """Samples of these cores (None: of all) from the first time to before the second."""
        elapsed_s = (span[1] - span[0]) / NS_PER_S * (self.cores if cpus is None else len(cpus))
        return stacks_of(self.recording.samples(*span, cpus), self.names, elapsed_s, self.period_s)

    @cached_property
    def period_s(self) -> float:
        """What one sample stands for: as recorded, else measured where it is busiest, because an
        idle core leaves holes.
        """
        rows = self.recording.rows("sampling", self.span[0] - LONGEST_SEGMENT_NS, self.span[1])
        stored_ns = stored_period_ns(rows, *self.span)
        if stored_ns is not None:
            return stored_ns / NS_PER_S
        middle_ns, cpus = self._busiest()
        samples = self.recording.samples(
            middle_ns - 5 * NS_PER_S, middle_ns + 5 * NS_PER_S, cpus
        ).samples
        return sample_period_ns(numbers(samples, "time"), numbers(samples, "cpu")) / NS_PER_S

    def _busiest(self) -> tuple[int, list[int] | None]:
        """When, and on which core if that is known; an episode may be one in which everybody stands
        still.
        """
        rows = self._recorded_cores
        if len(rows):
            idle = np.nan_to_num(rows["idle_ns"]) + np.nan_to_num(rows["iowait_ns"])
            row = int(np.argmin(idle / np.maximum(rows["elapsed_ns"], 1)))
            return int(rows["time"][row]), [int(rows["cpu"][row])]
        busiest = max(self.episodes, key=lambda episode: episode.weight, default=None)
        return (busiest.from_ns + busiest.to_ns) // 2 if busiest else sum(self.span) // 2, None

    def _read(self, table: str) -> ColumnArrays:
        if table not in TABLES:
            return ColumnArrays(table, {"time": np.zeros(0, dtype=np.int64)})
        if table == "cores":
            return (
                self._recorded_cores
                if self.has_core_times
                else cores_from_samples(self.recording, self.span, self.names)
            )
        return self._rows(table)

    @cached_property
    def _recorded_cores(self) -> ColumnArrays:
        return self._rows("cores")

    def _rows(self, table: str) -> ColumnArrays:
        names = [column.name for column in TABLES[table].columns if column.name not in _LEFT_OUT]
        return read(self.recording, table, self.span, names, by_core=table in _BY_CORE)


class NodeView(Node):
    """A node as one rule sees it: what was read is shared, and `asked` is what this rule read."""

    def __init__(self, node: Node) -> None:
        self.__dict__.update(node.__dict__)
        self.asked: set[str] = set()

    def columns(self, table: str) -> ColumnArrays:
        self.asked.add(table)
        return super().columns(table)

    def rows(self, table: str, span: Span) -> list[dict[str, Any]]:
        self.asked.add(table)
        return super().rows(table, span)
