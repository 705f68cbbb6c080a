"""Why was this program late: its waits in a stretch of time, and who was in the way of each."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from necroscope.analysis.columns import ColumnArrays, Flags, read
from necroscope.analysis.recording import Recording
from necroscope.analysis.task_waits import TaskWait, task_waits
from necroscope.model.span import Span
from necroscope.model.units import NS_PER_S, format_moment

_MOST: Final = 10
_LONG_NS: Final = NS_PER_S


@dataclass(frozen=True, slots=True)
class AlikeWaits:
    """Waits for the same thing with the same program in the way; the longest stands for them."""

    longest: TaskWait
    count: int
    total_s: float


@dataclass(frozen=True)
class VictimReport:
    """`waits` cost the most, of `count` in all that took `total_s`, by kind; `others` are the
    programs that waited longest if this one did not wait.
    """

    name: str
    span: Span
    waits: tuple[AlikeWaits, ...]
    count: dict[str, int]
    total_s: dict[str, float]
    others: tuple[str, ...]

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
                "alike": {"count": alike.count, "total_s": round(alike.total_s, 3)},
            }
            for alike in self.waits
            for wait in (alike.longest,)
        ]


def victim_report(recording: Recording, name: str, span: Span) -> VictimReport:
    """Of all threads of a program, by its name, a thread's name, or its pid."""
    rows = read(recording, "waits", span)
    own = rows.at(_is_of(rows, name)) if len(rows) else rows
    waits = task_waits(own, least_ns=0)
    alike = _alike(waits)
    kinds = dict.fromkeys(each.longest.kind for each in alike)
    return VictimReport(
        name,
        span,
        tuple(alike[:_MOST]),
        {kind: sum(wait.kind == kind for wait in waits) for kind in kinds},
        {kind: _total_s(wait for wait in waits if wait.kind == kind) for kind in kinds},
        () if waits else _longest_waiters(rows),
    )


def longest_wait(recording: Recording, span: Span) -> TaskWait | None:
    """Of a program, or how long it was stopped; None where none took a second."""
    waits = task_waits(read(recording, "waits", span), _LONG_NS)
    own = (wait for wait in waits if wait.task.policy != "kernel")
    return max(own, key=lambda wait: wait.seconds, default=None)


def _alike(waits: Sequence[TaskWait]) -> list[AlikeWaits]:
    groups: dict[tuple[Hashable, ...], list[TaskWait]] = {}
    for wait in waits:
        who = (wait.by.comm, wait.by.pid) if wait.by is not None else None
        what = wait.cpu if wait.is_for_a_core else (wait.stack, wait.by_stack)
        groups.setdefault((wait.kind, what, who), []).append(wait)
    found = [
        AlikeWaits(max(group, key=lambda wait: wait.seconds), len(group), _total_s(group))
        for group in groups.values()
    ]
    return sorted(found, key=lambda alike: -alike.total_s)


def _longest_waiters(rows: ColumnArrays) -> tuple[str, ...]:
    if not len(rows):
        return ()
    order = np.argsort(-rows["waited_ns"], kind="stable")
    return tuple(dict.fromkeys(rows["comm"][order].tolist()))[:_MOST]


def _total_s(waits: Iterable[TaskWait]) -> float:
    return sum(wait.to_ns - wait.from_ns for wait in waits) / NS_PER_S


def _is_of(rows: ColumnArrays, name: str) -> Flags:
    if name.isdigit():
        found: Flags = (rows["pid"] == int(name)) | (rows["tid"] == int(name))
        return found
    return np.isin(rows["pid"], np.unique(rows["pid"][rows["comm"] == name]))
