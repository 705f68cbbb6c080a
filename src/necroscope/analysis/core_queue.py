"""Who waited for a core, and whose tasks had it meanwhile: the table `waits` and the samples of
that core.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from necroscope.analysis.case import Case
from necroscope.analysis.columns import ColumnArrays
from necroscope.analysis.task_waits import RUNNABLE, whole_waits
from necroscope.model.definitions import ORDINARY, REAL_TIME
from necroscope.model.units import NS_PER_S

# Where it is not known on how many cores a task may run.
_ANY: Final = 1 << 16


@dataclass(frozen=True)
class CoreQueue:
    """Waits of ordinary tasks for one core, as far as they are in the incident: `waited_s`
    by cgroup, and `had`, the share of the core that each cgroup's tasks had.
    """

    rows: ColumnArrays
    waited_s: dict[str, float]
    had: dict[str, float]
    longest_s: float
    tasks: int

    def of(self, cgroup: str) -> "CoreQueue":
        """The waits of one cgroup."""
        rows = self.rows.at(np.array([(one or "/") == cgroup for one in self.rows["cgroup"]]))
        longest_s = float(np.max(rows["waited_ns"])) / NS_PER_S
        return CoreQueue(
            rows,
            {cgroup: self.waited_s[cgroup]},
            self.had,
            longest_s,
            len(np.unique(rows["tid"])),
        )

    @property
    def total_s(self) -> float:
        return sum(self.waited_s.values())

    @property
    def least_allowed(self) -> int:
        """On how many cores most of those who waited may run."""
        allowed = self.rows["cores_allowed"]
        known = allowed[np.isfinite(allowed)]
        return int(np.median(known)) if len(known) else _ANY

    @property
    def programs(self) -> list[str]:
        """Names of those who waited, most of it first."""
        return list(_sums(zip(self.rows["comm"].tolist(), self.rows["waited_ns"], strict=True)))


def core_queue(case: Case) -> CoreQueue | None:
    """None where no ordinary program waited for the incident's core, or a real-time task had it."""
    if case.core is None:
        return None
    rows = case.node.columns("waits").of_core(case.core)
    if not len(rows):
        return None
    from_ns, to_ns = case.window
    chosen = np.array(
        [
            kind == RUNNABLE and policy in ORDINARY and priority <= 0
            for kind, policy, priority in zip(
                rows["kind"], rows["policy"], rows["priority"], strict=True
            )
        ],
        dtype=bool,
    )
    rows = whole_waits(rows.at(chosen))
    began_ns = np.maximum(rows["time"] - rows["waited_ns"], from_ns)
    inside_ns = np.minimum(rows["time"], to_ns + NS_PER_S) - began_ns
    rows = ColumnArrays(rows.table, {**rows.values, "waited_ns": inside_ns}).at(inside_ns > 0)
    if not len(rows) or any(policy in REAL_TIME for policy in rows["by_policy"]):
        return None
    waited = _sums(zip(rows["cgroup"].tolist(), rows["waited_ns"] / NS_PER_S, strict=True))
    had = _sums((task.cgroup, task.share) for task in case.samples.now.tasks())
    longest_s = float(np.max(rows["waited_ns"])) / NS_PER_S
    return CoreQueue(rows, waited, had, longest_s, len(np.unique(rows["tid"])))


def _sums(pairs: Iterable[tuple[str | None, float]]) -> dict[str, float]:
    """By name, the largest first."""
    found: dict[str, float] = {}
    for name, weight in pairs:
        found[name or "/"] = found.get(name or "/", 0.0) + float(weight)
    return dict(sorted(found.items(), key=lambda item: -item[1]))
