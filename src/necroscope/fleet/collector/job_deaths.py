"""Which nodes hear of a job's death: those that reported a member of it. Nodes learn it with the
answer to their next batch, and keep the minutes around it.

What is known comes from the lake's newest files, so that it does not matter which of several
collectors a node reached.
"""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from necroscope.fleet.lake import Lake
from necroscope.fleet.lake_files import NotInLake
from necroscope.fleet.lake_tables import DAY_NS
from necroscope.fleet.table_files import TableFile
from necroscope.model.units import NS_PER_S

_TABLE: Final = "job_members"
_COLUMNS: Final = (
    "cluster", "node", "time", "job", "kind", "role", "ended_ns", "status", "clock_offset_ns",
)  # fmt: skip
# Members that live are reported once per hour.
_KNOWN_NS: Final = 2 * 3600 * NS_PER_S
_NEWS_NS: Final = 300 * NS_PER_S
_MOST_JOBS: Final = 50_000
_MOST_DEATHS: Final = 32
# Other kinds end their workers all the time: there only a signal is a death, or a driver's failure.
_GROUPS: Final = frozenset({"torch", "slurm", "mpi"})
_DRIVER: Final = "driver"
_BY_SIGNAL: Final = 0x7F


@dataclass(slots=True)
class _KnownJob:
    """`nodes` with when each was last reported to be part of it."""

    nodes: dict[str, int] = field(default_factory=dict)
    died_ns: int | None = None

    @property
    def seen_ns(self) -> int:
        return max(self.nodes.values(), default=0)

    def has(self, node: str, now_ns: int) -> bool:
        return now_ns - self.nodes.get(node, 0) <= _KNOWN_NS


class JobDeaths:
    """`refresh` is called by the upkeep, `of` by requests in other threads."""

    def __init__(self, lake: Lake, clock_ns: Callable[[], int]) -> None:
        self._lake = lake
        self._clock_ns = clock_ns
        self._lock = threading.Lock()
        self._jobs: dict[tuple[str, str], _KnownJob] = {}
        self._read: set[str] = set()

    def refresh(self) -> None:
        """Files that were written since the last time, by any collector."""
        now_ns = self._clock_ns()
        paths = self._lake.table_files(_TABLE, now_ns - DAY_NS, now_ns + DAY_NS)
        new = [path for path in paths if path not in self._read and _is_recent(path, now_ns)]
        for path in new:
            try:
                rows = self._lake.dataset_of(_TABLE, [path]).to_table(list(_COLUMNS))
            except (NotInLake, OSError, pa.ArrowException):
                continue  # merged just now: another file has its rows
            self._take(rows, now_ns)
        self._read = set(paths)
        self._forget(now_ns)

    def of(self, cluster: str, node: str) -> list[dict[str, Any]]:
        """Deaths of the last minutes of jobs that this node is part of, by the collector's
        clock.
        """
        with self._lock:
            return list(self._of(cluster, node))[:_MOST_DEATHS]

    def _of(self, cluster: str, node: str) -> Iterator[dict[str, Any]]:
        now_ns = self._clock_ns()
        for (of_cluster, job), known in self._jobs.items():
            if of_cluster != cluster or known.died_ns is None or now_ns - known.died_ns > _NEWS_NS:
                continue
            above = self._jobs.get((cluster, job.rpartition("/")[0]))
            if known.has(node, now_ns) or (above is not None and above.has(node, now_ns)):
                yield {"job": job, "time_ns": known.died_ns}

    def _take(self, rows: pa.Table, now_ns: int) -> None:
        """Rows of one job on one node become one before they are looked at."""
        recent = rows.filter(pc.greater(rows["time"], now_ns - DAY_NS - _KNOWN_NS))
        with self._lock:
            for row in recent.to_pylist():
                offset_ns = row["clock_offset_ns"] or 0
                seen_ns = row["time"] + offset_ns
                if now_ns - seen_ns > _KNOWN_NS:
                    continue
                known = self._jobs.setdefault((row["cluster"], row["job"]), _KnownJob())
                known.nodes[row["node"]] = max(known.nodes.get(row["node"], 0), seen_ns)
                if _is_death(row):
                    died_ns = row["ended_ns"] + offset_ns
                    known.died_ns = max(known.died_ns or 0, min(died_ns, now_ns))

    def _forget(self, now_ns: int) -> None:
        with self._lock:
            kept = [item for item in self._jobs.items() if now_ns - item[1].seen_ns <= _KNOWN_NS]
            if len(kept) > _MOST_JOBS:
                kept = sorted(kept, key=lambda item: item[1].seen_ns)[-_MOST_JOBS:]
            self._jobs = dict(kept)


def _is_recent(path: str, now_ns: int) -> bool:
    file = TableFile.of(path)
    return file is not None and now_ns - file.written_ns <= _KNOWN_NS


def _is_death(row: dict[str, Any]) -> bool:
    status = row["status"]
    return (
        bool(status)
        and row["ended_ns"] is not None
        and (row["kind"] in _GROUPS or row["role"] == _DRIVER or bool(status & _BY_SIGNAL))
    )
