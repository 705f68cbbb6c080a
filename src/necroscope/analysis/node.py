"""What is known of the node over the stretch under analysis: each table is read once, samples only where they are asked for."""

from collections.abc import Collection, Sequence
from functools import cached_property
from typing import Final

import numpy as np

from necroscope.analysis.columns import Columns, Span, read
from necroscope.analysis.episodes import Episode
from necroscope.analysis.functions import FunctionNames
from necroscope.analysis.recording import Recording
from necroscope.analysis.sampled_cores import cores_from_samples
from necroscope.analysis.stacks import Stacks, period_of, stacks_of
from necroscope.model.tables import TABLES
from necroscope.model.units import NS_PER_S

MODES: Final[dict[str, tuple[str, ...]]] = {
    "user": ("user_ns", "nice_ns"),
    "system": ("system_ns",),
    "irq": ("irq_ns",),
    "softirq": ("softirq_ns",),
    "steal": ("steal_ns",),
    "idle": ("idle_ns", "iowait_ns"),
    "iowait": ("iowait_ns",),
    "kernel": ("system_ns", "irq_ns", "softirq_ns", "steal_ns"),
    # Guest time is in user time already.
    "all": ("user_ns", "nice_ns", "system_ns", "idle_ns", "iowait_ns", "irq_ns", "softirq_ns", "steal_ns"),
}
# Texts and lists that no rule looks at in bulk; `Case.rows` has them.
_LEFT_OUT: Final = frozenset({"histogram", "lines"})
_BY_CORE: Final = frozenset({"cores", "softirqs", "softnet", "softirq_delay", "runqueue"})


class Node:
    """One stretch of a recording. `episodes` are all that were found in it; they are set once, by the engine."""

    def __init__(self, recording: Recording, span: Span) -> None:
        self.recording = recording
        self.span = span
        self.names = FunctionNames()
        self.episodes: Sequence[Episode] = ()
        info = recording.info()
        self.schema, self.name = info.schema, info.node
        self.tables = dict(info.tables)
        self._known_cpus = info.cpus
        whole_ns = max(1, (info.to_ns or 0) - (info.from_ns or 0))
        self._part = min(1.0, (span[1] - span[0]) / whole_ns)
        self._columns: dict[str, Columns] = {}
        # What rules work out of the tables and share.
        self.derived: dict[str, object] = {}

    @cached_property
    def cpus(self) -> list[int]:
        """Core numbers seen; on some machines they have holes."""
        seen = np.unique(self.columns("cores")["cpu"])
        return [int(cpu) for cpu in seen] or list(range(self._known_cpus or 1))

    @property
    def cores(self) -> int:
        return len(self.cpus)

    @property
    def has_core_times(self) -> bool:
        """Whether the time of cores was recorded, and not only estimated from samples."""
        return bool(self.tables.get("cores"))

    def expected_rows(self, table: str) -> int:
        """About how many rows the stretch has, known before they are read."""
        return round(self.tables.get(table, 0) * self._part)

    def columns(self, table: str) -> Columns:
        """All rows of a table in the stretch; those by core are sorted by core, then time."""
        if table not in self._columns:
            self._columns[table] = self._read(table)
        return self._columns[table]

    def stacks(self, span: Span, cpus: Collection[int] | None) -> Stacks:
        """Samples of these cores (None: of all) from the first time to before the second."""
        elapsed_s = (span[1] - span[0]) / NS_PER_S * (self.cores if cpus is None else len(cpus))
        return stacks_of(self.recording.samples(*span, cpus), self.names, elapsed_s, self.period_s)

    @cached_property
    def period_s(self) -> float:
        """What one sample stands for: measured where it is busiest, because an idle core leaves holes."""
        busiest = max(self.episodes, key=lambda episode: episode.weight, default=None)
        middle_ns = (busiest.from_ns + busiest.to_ns) // 2 if busiest else sum(self.span) // 2
        samples = self.recording.samples(middle_ns - 5 * NS_PER_S, middle_ns + 5 * NS_PER_S).samples
        return period_of(samples.column("time").to_numpy(), samples.column("cpu").to_numpy().astype(np.int64))

    def _read(self, table: str) -> Columns:
        if table not in TABLES:
            return Columns(table, {"time": np.zeros(0, dtype=np.int64)})
        names = [column.name for column in TABLES[table].columns if column.name not in _LEFT_OUT]
        if table == "cores" and not self.has_core_times:
            return cores_from_samples(self.recording, self.span, self.names)
        return read(self.recording, table, self.span, names, by_core=table in _BY_CORE)
