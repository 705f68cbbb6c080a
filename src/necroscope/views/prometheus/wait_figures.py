"""How long tasks waited: for their core, all of them, and the longest single waits of the last
minute by kind.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa

from necroscope.model.tables import RUN_DELAY_BUCKETS
from necroscope.model.units import NS_PER_S, NS_PER_US
from necroscope.views.prometheus.exposition import Gauge, Histogram, Metric
from necroscope.views.prometheus.softirq_figures import fold
from necroscope.views.prometheus.worst import Worst

DELAY_COLUMNS: Final = ("time", "cpu", "histogram")
WAIT_COLUMNS: Final = ("time", "cpu", "kind", "waited_ns")
KINDS: Final = (
    *("runnable", "blocked", "futex", "semaphore", "file_lock", "unread", "stopped"),
    *("unanswered", "unserved", "asleep"),
)
_BOUNDS: Final = tuple(
    2.0 ** (bucket + 1) * 1.024 * NS_PER_US / NS_PER_S
    for bucket in range(1, RUN_DELAY_BUCKETS - 1, 2)
)


class WaitFigures:
    """Fed with new rows of `run_delay` and `waits`; without BPF they have no series."""

    def __init__(self) -> None:
        self._delays = Histogram(
            "necroscope_run_delay_seconds", "Waits of tasks for their core, of all cores.", _BOUNDS
        )
        self._worst_wait = Gauge(
            "necroscope_worst_wait_seconds",
            "Longest wait of a task in the last minute, ended or not.",
            ("kind",),
        )
        self._worst = {kind: Worst() for kind in KINDS}

    def metrics(self, now_ns: int) -> Iterator[Metric]:
        for kind, worst in self._worst.items():
            found = worst.before(now_ns)
            self._worst_wait.set(found[0] if found else None, kind)
        yield from (self._delays, self._worst_wait)

    def take_delays(self, rows: pa.Table, *, counts: bool) -> None:
        if counts and rows.num_rows:
            self._delays.add(fold(rows.column("histogram")), None)

    def take_waits(self, rows: pa.Table, *, counts: bool) -> None:  # noqa: ARG002 - only gauges
        if not rows.num_rows:
            return
        times, cpus = rows.column("time").to_numpy(), rows.column("cpu").to_numpy()
        waited_s = rows.column("waited_ns").to_numpy() / NS_PER_S
        kinds = rows.column("kind").cast(pa.utf8()).to_numpy(zero_copy_only=False)
        for kind in KINDS:
            own = np.flatnonzero(kinds == kind)
            self._worst[kind].take(times[own], waited_s[own], cpus[own])
