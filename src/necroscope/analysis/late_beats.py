"""Threads that kept a rhythm and were late, from the table `late_beats`, each with the wait that
made it late.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from necroscope.analysis.columns import ColumnArrays
from necroscope.analysis.task_waits import TaskWait
from necroscope.analysis.wait_channels import (
    ANSWER,
    ASLEEP,
    ORDINARY_SLEEP,
    SEMAPHORE,
    STOPPED,
    UNANSWERED,
    UNREAD,
)
from necroscope.model.span import Lasting
from necroscope.model.units import NS_PER_S

_MOST: Final = 500
# Of the time that it was late: a wait that was shorter did not make it late.
_MOSTLY: Final = 0.5
# What a program does at its own speed or another's, and so is not late for: who writes to a pipe
# has the rhythm of its reader.
_NO_REASON: Final = frozenset({ORDINARY_SLEEP, UNREAD, UNANSWERED, ANSWER, SEMAPHORE, ASLEEP})


@dataclass(frozen=True, slots=True)
class LateBeat(Lasting):
    """From when the beat was due to when it came, or was last seen to be missing. `wait` is None
    where none is recorded that explains it: its work took long, or it stopped by itself.
    """

    from_ns: int
    to_ns: int
    period_ns: int
    is_open: bool
    pid: int
    tid: int
    comm: str
    cgroup: str | None
    wait: TaskWait | None = None

    @property
    def missed(self) -> float:
        """How many beats."""
        return (self.to_ns - self.from_ns) / self.period_ns

    def words(self) -> str:
        """`raylet[71], which beats every 0.25 s, was 3.1 s late`."""
        beats = f"which beats every {self.period_ns / NS_PER_S:.2g} s"
        is_late = "is late by over" if self.is_open else "was late by"
        return f"{self.comm}[{self.tid}], {beats}, {is_late} {self.seconds:.1f} s"


def late_beats(rows: ColumnArrays, waits: Sequence[TaskWait]) -> tuple[LateBeat, ...]:
    """In order of time; of very many the latest ones."""
    if not len(rows):
        return ()
    rows = rows.at(rows["period_ns"] > 0)
    if len(rows) > _MOST:
        rows = rows.at(np.sort(np.argsort(-rows["late_ns"])[:_MOST]))
    found: dict[int, list[LateBeat]] = {}
    for beat in map(_beat, *(rows[name].tolist() for name in _COLUMNS)):
        own = found.setdefault(beat.tid, [])
        goes_on = bool(own) and own[-1].is_open and beat.from_ns <= own[-1].to_ns
        from_ns = min(beat.from_ns, own.pop().from_ns) if goes_on else beat.from_ns
        own.append(replace(beat, from_ns=from_ns))
    beats = [replace(one, wait=_cause(one, waits)) for own in found.values() for one in own]
    return tuple(sorted(beats, key=lambda one: one.from_ns))


_COLUMNS: Final = ("time", "late_ns", "period_ns", "is_open", "pid", "tid", "comm", "cgroup")


def _beat(
    time_ns: int,
    late_ns: int,
    period_ns: int,
    is_open: bool,
    pid: int,
    tid: int,
    comm: str,
    cgroup: str | None,
) -> LateBeat:
    start_ns = int(time_ns) - int(late_ns)
    return LateBeat(
        start_ns, int(time_ns), int(period_ns), bool(is_open), int(pid), int(tid), comm, cgroup
    )


def _cause(beat: LateBeat, waits: Sequence[TaskWait]) -> TaskWait | None:
    """The wait of that thread, or the stop of its process, that was most of it."""
    own = [
        wait
        for wait in waits
        if (wait.task.tid == beat.tid and wait.channel.kind not in _NO_REASON)
        or (wait.task.pid == beat.pid and wait.channel.kind == STOPPED)
    ]
    longest = max(own, key=lambda wait: wait.span.shared_ns(beat.span), default=None)
    if longest is None:
        return None
    is_most = longest.span.shared_ns(beat.span) >= _MOSTLY * beat.span.length_ns
    return longest if is_most else None
