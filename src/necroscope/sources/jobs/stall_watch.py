"""Whether the members of a job on this node have all stopped: decisions without I/O.

A process group works in step: when one rank stands still, the others come to their next collective
and wait there. So a job that has worked and in which nobody works any more has stalled, long before
its own time-out. A rank that spins while it waits (NCCL does, on a GPU) looks busy: then nothing is
said.
"""

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from necroscope.model.units import NS_PER_S

# A rank that waits in a collective runs some threads for a moment now and then.
IDLE_RATIO: Final = 0.05
# This much of a core on average, in the minute before, makes a job that worked.
WORKED_RATIO: Final = 0.3
_WORKED_NS: Final = 10 * NS_PER_S
STALLED_NS: Final = 10 * NS_PER_S
_MEMORY_NS: Final = 60 * NS_PER_S


@dataclass(slots=True)
class _Work:
    """Of one member: time and work that is remembered, and since when it stands."""

    elapsed_ns: float = 0.0
    worked_ns: float = 0.0
    stands_ns: int | None = None

    def note(self, time_ns: int, elapsed_ns: int, cpu_ns: int) -> None:
        if cpu_ns >= IDLE_RATIO * elapsed_ns:
            self.stands_ns = None
        elif self.stands_ns is None:
            self.stands_ns = time_ns - elapsed_ns
        if self.stands_ns is None:
            kept = max(0.0, 1 - elapsed_ns / _MEMORY_NS)
            self.elapsed_ns = self.elapsed_ns * kept + elapsed_ns
            self.worked_ns = self.worked_ns * kept + cpu_ns

    @property
    def has_worked(self) -> bool:
        return self.elapsed_ns >= _WORKED_NS and self.worked_ns >= WORKED_RATIO * self.elapsed_ns


class Stall(NamedTuple):
    """`first` is the pid of who stopped first, at `since_ns`."""

    job: str
    first: int
    since_ns: int
    members: int


@dataclass(slots=True)
class StallWatch:
    """Edge-triggered: a job that goes on and stalls again is reported again."""

    _work: dict[str, dict[int, _Work]] = field(default_factory=dict)
    _stalled: set[str] = field(default_factory=set)

    def note(self, job: str, pid: int, time_ns: int, elapsed_ns: int, cpu_ns: int) -> None:
        self._work.setdefault(job, {}).setdefault(pid, _Work()).note(time_ns, elapsed_ns, cpu_ns)

    def forget(self, job: str, pid: int) -> None:
        members = self._work.get(job, {})
        members.pop(pid, None)
        if not members:
            self._work.pop(job, None)
            self._stalled.discard(job)

    def stalls(self, now_ns: int) -> list[Stall]:
        found = []
        for job, members in self._work.items():
            standing = {pid: work.stands_ns for pid, work in members.items()}
            since = [since_ns for since_ns in standing.values() if since_ns is not None]
            if len(since) < len(members):
                self._stalled.discard(job)
                continue
            is_long = bool(since) and now_ns - max(since) >= STALLED_NS
            if not is_long or job in self._stalled:
                continue
            if all(work.has_worked for work in members.values()):
                self._stalled.add(job)
                first = min(standing, key=lambda pid: (standing[pid] or 0, pid))
                found.append(Stall(job, first, min(since), len(members)))
        return found
