"""What a collector tells Prometheus: a fixed set of names, none of them by node.

Written by hand in the text format (https://prometheus.io/docs/instrumenting/exposition_formats/): a few counters need no library.
"""

import os
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

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
_LABELLED: Final = {"requests", "rows"}
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
        self._counts = Counter({(name, ""): 0 for name in _COUNTERS if name not in _LABELLED})
        self._buckets: dict[str, list[int]] = {name: [0] * (len(_BUCKETS_S) + 1) for name in _HISTOGRAMS}
        self._sums = dict.fromkeys(_HISTOGRAMS, 0.0)

    def add(self, name: str, amount: int = 1, label: str = "") -> None:
        """`label` is from a small fixed set, as `status="200"`."""
        self._counts[name, label] += amount

    def count(self, name: str, label: str = "") -> int:
        return self._counts[name, label]

    def observe(self, name: str, value_s: float) -> None:
        self._buckets[name][bisect_left(_BUCKETS_S, value_s)] += 1
        self._sums[name] += value_s

    def text(self, gauges: Mapping[str, float]) -> str:
        lines: list[str] = []
        for name, meaning in _COUNTERS.items():
            found = sorted((label, count) for (counter, label), count in list(self._counts.items()) if counter == name)
            lines += _family(f"{name}_total", "counter", meaning, found)
        for name, meaning in _HISTOGRAMS.items():
            lines += self._histogram(name, meaning)
        for name, meaning in _GAUGES.items():
            lines += _family(name, "gauge", meaning, [("", gauges[name])])
        return "\n".join(lines) + "\n"

    def _histogram(self, name: str, meaning: str) -> Iterable[str]:
        so_far = 0
        lines = [f"# HELP {_PREFIX}{name} {meaning}", f"# TYPE {_PREFIX}{name} histogram"]
        for bound, count in zip([*map(str, _BUCKETS_S), "+Inf"], self._buckets[name], strict=True):
            so_far += count
            lines.append(f'{_PREFIX}{name}_bucket{{le="{bound}"}} {so_far}')
        return [*lines, f"{_PREFIX}{name}_sum {self._sums[name]}", f"{_PREFIX}{name}_count {so_far}"]


def _family(name: str, kind: str, meaning: str, values: Iterable[tuple[str, float]]) -> list[str]:
    head = [f"# HELP {_PREFIX}{name} {meaning}", f"# TYPE {_PREFIX}{name} {kind}"]
    return head + [f"{_PREFIX}{name}{{{label}}} {value}" if label else f"{_PREFIX}{name} {value}" for label, value in values]


def resident_memory_bytes() -> int:
    """0 where there is no /proc."""
    try:
        return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
