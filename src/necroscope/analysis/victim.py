"""Why was this program late: its waits in a stretch of time, and who was in the way of each."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from necroscope.analysis.columns import ColumnArrays, Flags, read
from necroscope.analysis.recording import Recording
from necroscope.analysis.task_waits import TaskWait, task_waits
from necroscope.model.span import Span
from necroscope.model.units import NS_PER_S, format_moment

_MOST: Final = 10


@dataclass(frozen=True)
class VictimReport:
    """`waits` are the longest, of `count` in all that took `total_s`, by kind."""

    name: str
    span: Span
    waits: tuple[TaskWait, ...]
    count: dict[str, int]
    total_s: dict[str, float]

    def as_json(self) -> dict[str, Any]:
        kinds = {
            kind: {"count": self.count[kind], "total_s": round(self.total_s[kind], 3)}
            for kind in self.count
        }
        return {"victim": self.name, **self.span.as_json(), "kinds": kinds, "waits": self._waits()}

    def _waits(self) -> list[dict[str, Any]]:
        return [
            {
                "from": format_moment(wait.from_ns),
                "to": format_moment(wait.to_ns),
                "seconds": round(wait.seconds, 3),
                "kind": wait.kind,
                "is_open": wait.is_open,
                "core": wait.cpu,
                "tid": wait.task.tid,
                "waited_for": wait.channel.name if wait.stack else None,
                "stack": list(wait.stack),
                "by": None
                if wait.by is None
                else {"comm": wait.by.comm, "pid": wait.by.pid, "cgroup": wait.by.cgroup},
                "by_stack": list(wait.by_stack),
            }
            for wait in self.waits
        ]


def victim_report(recording: Recording, name: str, span: Span) -> VictimReport:
    """Of all threads of a program, by its name, a thread's name, or its pid."""
    rows = read(recording, "waits", span)
    own = rows.at(_is_of(rows, name)) if len(rows) else rows
    waits = sorted(task_waits(own, least_ns=0), key=lambda wait: -wait.seconds)
    kinds = dict.fromkeys(wait.kind for wait in waits)
    return VictimReport(
        name,
        span,
        tuple(waits[:_MOST]),
        {kind: sum(wait.kind == kind for wait in waits) for kind in kinds},
        {kind: _total_s(waits, kind) for kind in kinds},
    )


def _total_s(waits: Sequence[TaskWait], kind: str) -> float:
    return sum(wait.to_ns - wait.from_ns for wait in waits if wait.kind == kind) / NS_PER_S


def _is_of(rows: ColumnArrays, name: str) -> Flags:
    if name.isdigit():
        found: Flags = (rows["pid"] == int(name)) | (rows["tid"] == int(name))
        return found
    return np.isin(rows["pid"], np.unique(rows["pid"][rows["comm"] == name]))
