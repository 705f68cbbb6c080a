"""All metrics of a node, from its recording: each look reads only the rows that came since the one
before.

No series has a core in its labels: a core is a value (`necroscope_worst_core_number`), so that 96
cores cost what 2 cost. Counters begin when this process begins, as Prometheus expects: what was
counted before a restart would else be counted again.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import pyarrow as pa

from necroscope.model.definitions import LEFT_BEHIND_NS
from necroscope.model.units import NS_PER_S
from necroscope.store.catalog import Segment
from necroscope.store.query import Store
from necroscope.views.prometheus import cgroup_figures, core_figures, softirq_figures, wait_figures
from necroscope.views.prometheus.cgroup_figures import CgroupFigures
from necroscope.views.prometheus.core_figures import CoreFigures
from necroscope.views.prometheus.exposition import Counter, Gauge, Metric, exposition
from necroscope.views.prometheus.happened import EventCounters
from necroscope.views.prometheus.softirq_figures import SoftirqFigures
from necroscope.views.prometheus.verdict_figures import VerdictFigures
from necroscope.views.prometheus.wait_figures import WaitFigures

# Gauges describe the last minute: it is read at the start, also where counting begins later.
_MINUTE_NS: Final = 60 * NS_PER_S
# A store keeps what it has read of each segment for the next question; of those from before an hour
# none will come.
_REOPEN_NS: Final = 3600 * NS_PER_S


class NodeMetrics:
    """`look`, then `text`. `counts_from_ns` is where counting begins: the end of the recording, or
    a while before it.
    """

    def __init__(
        self, store: Store, counts_from_ns: int, version: str, causes: Iterable[str]
    ) -> None:
        self._store = store
        self._opened_ns: int | None = None
        self._counts_from_ns = counts_from_ns
        self._cursors_ns: dict[str, int] = {}
        self._end_ns: int | None = None
        self._grown_ns = 0
        self._sizes: dict[Path, int] = {}
        self._knows_cost = False
        self._cores = CoreFigures()
        self._softirqs = SoftirqFigures()
        self._waits = WaitFigures()
        self._cgroups = CgroupFigures()
        self._happened = EventCounters(counts_from_ns)
        self.verdicts = VerdictFigures(causes)
        self._build = Gauge(
            "necroscope_build_info", "The version of what answers here.", ("version",)
        )
        self._build.set(1, version)
        self._newest = Gauge(
            "necroscope_recording_newest_timestamp_seconds",
            "Time of the newest row of the recording.",
        )
        self._is_live = Gauge(
            "necroscope_recorder_up", "1 while a recorder holds the recording and it grows."
        )
        self._bytes = Gauge("necroscope_recording_bytes", "Size of the recording on disk.")
        self._pins = Gauge(
            "necroscope_recording_pinned_windows", "Windows around incidents that retention keeps."
        )
        self._core_count = Gauge("necroscope_cores", "Cores of the node.")
        self._recorder_cpu = Counter(
            "necroscope_recorder_cpu_seconds_total", "CPU time of the recorder and its children."
        )
        self._recorder_memory = Gauge(
            "necroscope_recorder_resident_bytes",
            "Resident memory of the recorder and its children.",
        )

    def look(self, now_ns: int, *, is_recorded: bool) -> None:
        """Take in what came since the last look. `is_recorded`: a recorder holds the recording."""
        self._opened_ns = now_ns if self._opened_ns is None else self._opened_ns
        if now_ns - self._opened_ns >= _REOPEN_NS:
            self._store, self._opened_ns = Store.open(self._store.catalog.directory), now_ns
        self._store.catalog.refresh()
        segments = self._store.catalog.segments
        self._pins.set(len(self._store.pins()))
        if not segments:
            self._is_live.set(float(is_recorded))
            return
        end_ns = max(segment.to_ns for segment in segments)
        # By two looks at the same clock: the recording's own time may be hours off.
        self._grown_ns = now_ns if end_ns != self._end_ns else self._grown_ns
        is_growing = abs(now_ns - self._grown_ns) < LEFT_BEHIND_NS
        self._is_live.set(float(is_recorded and is_growing))
        self._end_ns = end_ns
        self._newest.set(end_ns / NS_PER_S)
        self._sizes = {
            segment.path: self._sizes.get(segment.path) or _size_bytes(segment)
            for segment in segments
        }
        self._bytes.set(sum(self._sizes.values()))
        for live in (segment for segment in segments if segment.is_live):
            self._sizes.pop(live.path)  # it grows
        self._core_count.set(self._store.catalog.reader(segments[-1]).cpus)
        self._take("cores", core_figures.COLUMNS, self._cores.take)
        self._take("softirq_delay", softirq_figures.COLUMNS, self._softirqs.take)
        self._take("run_delay", wait_figures.DELAY_COLUMNS, self._waits.take_delays)
        self._take("waits", wait_figures.WAIT_COLUMNS, self._waits.take_waits)
        self._take("cgroups", cgroup_figures.COLUMNS, lambda rows, **_: self._cgroups.take(rows))
        self._take("cgroup_ledger", cgroup_figures.LEDGER_COLUMNS, self._take_ledger)
        self._happened.look(self._store, end_ns)

    def note_recorder(self, cpu_seconds: float, resident_bytes: int) -> None:
        """CPU time since the last note, and memory now."""
        self._recorder_cpu.add(max(0.0, cpu_seconds))
        self._recorder_memory.set(resident_bytes)
        self._knows_cost = True

    def text(self, more: Iterable[Metric] = ()) -> str:
        end_ns = self._end_ns or 0
        node = (self._build, self._newest, self._is_live, self._bytes, self._pins, self._core_count)
        figures = (
            *self._cores.metrics(end_ns),
            *self._softirqs.metrics(end_ns),
            *self._waits.metrics(end_ns),
            *self._cgroups.metrics(),
        )
        incidents = (*self._happened.metrics(), *self.verdicts.metrics())
        cost = (self._recorder_cpu, self._recorder_memory) if self._knows_cost else ()
        return exposition([*node, *figures, *incidents, *cost, *more])

    def _take(self, table: str, columns: tuple[str, ...], take: Callable[..., None]) -> None:
        """Rows of these tables come in order of time and a whole tick at once, so the last time
        read is where to go on.
        """
        end_ns = self._end_ns or 0
        from_ns = self._cursors_ns.get(table, min(self._counts_from_ns, end_ns - _MINUTE_NS))
        rows = self._store.rows(table, from_ns, end_ns + 1, columns=columns)
        if not rows.num_rows:
            return
        self._cursors_ns[table] = rows.column("time")[-1].as_py() + 1
        for part, counts in _parts(rows, self._counts_from_ns):
            take(part, counts=counts)

    def _take_ledger(self, rows: pa.Table, *, counts: bool) -> None:
        if counts:
            self._cgroups.take_ledger(rows)


def _size_bytes(segment: Segment) -> int:
    """Of all its files; 0 if it was removed just now."""
    try:
        return sum(file.stat().st_size for file in segment.path.iterdir())
    except OSError:
        return 0


def _parts(rows: pa.Table, counts_from_ns: int) -> list[tuple[pa.Table, bool]]:
    """What is before counting begins, and what is counted."""
    before = int((rows.column("time").to_numpy() < counts_from_ns).sum())
    return [
        (part, counts)
        for part, counts in ((rows.slice(0, before), False), (rows.slice(before), True))
        if part.num_rows
    ]
