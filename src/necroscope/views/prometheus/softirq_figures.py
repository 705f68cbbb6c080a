"""How long raised softirqs waited: the recorder's histogram, the worst wait of the last minute, and
what waits right now.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa

from necroscope.model.tables import SOFTIRQ_DELAY_BUCKETS
from necroscope.model.units import NS_PER_S, NS_PER_US
from necroscope.views.prometheus.exposition import OTHER, Gauge, Histogram, Metric
from necroscope.views.prometheus.worst import Worst

COLUMNS: Final = ("time", "cpu", "vector", "worst_ns", "pending_ns", "histogram")
# Resets come of the network's; the other eight vectors share one label, and two of the recorder's
# buckets make one of ours.
VECTORS: Final = ("net_rx", "net_tx", OTHER)
_BOUNDS: Final = tuple(
    2.0 ** (bucket + 1) * NS_PER_US / NS_PER_S for bucket in range(1, SOFTIRQ_DELAY_BUCKETS - 1, 2)
)


class SoftirqFigures:
    """Fed with new rows of `softirq_delay`; without that table (no BPF) it has no series."""

    def __init__(self) -> None:
        self._waits = Histogram(
            "necroscope_softirq_delay_seconds",
            "Waits of raised softirqs for their handler, of all cores.",
            _BOUNDS,
            ("vector",),
        )
        self._worst_wait = Gauge(
            "necroscope_softirq_worst_delay_seconds",
            "Longest wait of the last minute on any core, ended or not.",
            ("vector",),
        )
        self._worst_core = Gauge(
            "necroscope_softirq_worst_core_number",
            "Core of the longest wait of the last minute.",
            ("vector",),
        )
        self._pending = Gauge(
            "necroscope_softirq_pending_seconds",
            "Age of the oldest raise that waited at the last tick.",
        )
        self._worst = {vector: Worst() for vector in VECTORS}

    def metrics(self, now_ns: int) -> Iterator[Metric]:
        for vector, worst in self._worst.items():
            found = worst.before(now_ns)
            self._worst_wait.set(found[0] if found else None, vector)
            self._worst_core.set(found[1] if found else None, vector)
        yield from (self._waits, self._worst_wait, self._worst_core, self._pending)

    def take(self, rows: pa.Table, *, counts: bool) -> None:
        """With `counts` off only the gauges are fed."""
        if not rows.num_rows:
            return
        times, cpus = rows.column("time").to_numpy(), rows.column("cpu").to_numpy()
        pending_ns = rows.column("pending_ns").to_numpy()
        waits = np.maximum(rows.column("worst_ns").to_numpy(), pending_ns) / NS_PER_S
        names = rows.column("vector").cast(pa.utf8()).to_numpy(zero_copy_only=False)
        for vector in VECTORS:
            own = np.flatnonzero(
                names == vector if vector != OTHER else ~np.isin(names, VECTORS[:-1])
            )
            self._worst[vector].take(times[own], waits[own], cpus[own])
            if counts and len(own):
                self._waits.add(fold(rows.column("histogram").take(pa.array(own))), None, vector)
        self._pending.set(float(pending_ns[times == times[-1]].max()) / NS_PER_S)


def fold(histograms: pa.ChunkedArray) -> list[float]:
    """Rows of the recorder's buckets, which end at the last one that is not empty, added up; of
    ours each is two of them.
    """
    lists = histograms.combine_chunks()
    lengths = lists.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    first = np.repeat(np.cumsum(lengths) - lengths, lengths)
    bucket = np.minimum(np.arange(len(first)) - first, SOFTIRQ_DELAY_BUCKETS - 1)
    counts: list[float] = np.bincount(
        bucket // 2,
        weights=lists.flatten().to_numpy(zero_copy_only=False),
        minlength=SOFTIRQ_DELAY_BUCKETS // 2,
    ).tolist()
    return counts
