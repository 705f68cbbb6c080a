"""What a collector tells Prometheus: a fixed set of names, none of them by node."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from necroscope.views.prometheus.exposition import Counter, Gauge, Histogram, exposition

_PREFIX: Final = "necroscope_collector_"
_COUNTERS: Final = {
    "requests": "requests answered, by status",
    "batches": "batches made durable",
    "batch_bytes": "bytes of the bodies of those batches, as sent",
    "bundles": "evidence bundles made durable",
    "rows": "rows written to the lake's tables, by table",
    "ignored": "tables and columns of newer nodes that were left out",
    "commit_failures": "group commits that the lake refused",
    "upkeep_failures": "rounds of compaction, merging or reading tokens that failed",
    "compacted_files": "files of the inbox that became rows",
    "merged_files": "files of the tables that became fewer",
    "refused_files": "acknowledged data that could not be read any more, kept in refused/",
}
_LABELS: Final = {"requests": ("status",), "rows": ("table",)}
_HISTOGRAMS: Final = {
    "acknowledge_seconds": "from the head of a push to its answer",
    "commit_seconds": "one group commit",
    "compaction_seconds": "one compaction of the inbox",
}
_BUCKETS_S: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_GAUGES: Final = {
    "queue_bytes": "bytes on their way from the sockets to the lake",
    "queue_requests": "pushes on their way from the sockets to the lake",
    "lake_writable": "1 while the lake takes what it is given",
    "resident_memory_bytes": "memory of this process",
}


class Metrics:
    def __init__(self) -> None:
        self._counters = {
            name: Counter(f"{_PREFIX}{name}_total", meaning, _LABELS.get(name, ()))
            for name, meaning in _COUNTERS.items()
        }
        self._histograms = {
            name: Histogram(f"{_PREFIX}{name}", meaning, _BUCKETS_S)
            for name, meaning in _HISTOGRAMS.items()
        }
        self._gauges = {
            name: Gauge(f"{_PREFIX}{name}", meaning) for name, meaning in _GAUGES.items()
        }

    def add(self, name: str, amount: int = 1, *values: str) -> None:
        """`values` of its labels are from a small fixed set, as the status of an answer."""
        self._counters[name].add(amount, *values)

    def count(self, name: str, *values: str) -> int:
        return int(self._counters[name].value(*values))

    def observe(self, name: str, value_s: float) -> None:
        self._histograms[name].observe(value_s)

    def text(self, gauges: Mapping[str, float]) -> str:
        for name, gauge in self._gauges.items():
            gauge.set(gauges[name])
        return exposition(
            [*self._counters.values(), *self._histograms.values(), *self._gauges.values()]
        )


def resident_memory_bytes() -> int:
    """0 where there is no /proc."""
    try:
        return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * os.sysconf(
            "SC_PAGE_SIZE"
        )
    except (OSError, ValueError, IndexError):
        return 0
