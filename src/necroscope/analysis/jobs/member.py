"""The parts of a job as the analysis sees them, from one recording or from a lake alike: members,
how each stood before the end, and what its node went through.
"""

from dataclasses import dataclass, replace
from typing import Any, Final

from necroscope.analysis.report import UNKNOWN
from necroscope.model.span import Lasting, Span
from necroscope.model.units import NS_PER_S, format_moment

_SURE: Final = 0.5
# An incident is judged by ticks: its edges are that far off.
EDGE_NS: Final = 5 * NS_PER_S

# How a member stood. Those in the middle are done to it; one that waits, waits for a peer.
RUNNING, WAITING = "running", "waiting"
STARVED, BLOCKED, FROZEN = "starved", "blocked", "frozen"
HELD: Final = frozenset({STARVED, BLOCKED, FROZEN})
_WORDS: Final = {
    RUNNING: "running",
    WAITING: "waiting",
    STARVED: "runnable and not run",
    BLOCKED: "asleep in the kernel (state D)",
    FROZEN: "stopped by a signal or a debugger",
}
# What another did, to one that was held so.
_BY_WORDS: Final = {
    STARVED: "had the core",
    BLOCKED: "had what it slept for",
    FROZEN: "stopped it",
}
# In place of who held it: its own limit, and of which cgroup.
QUOTA_OF: Final = "the CPU quota of "
# No clock was compared with another: the best that can be said of NTP that works.
UNMEASURED_ERROR_NS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Stop(Lasting):
    """A stretch in which a member got nothing done. `by` had the core, or what it slept for, in
    most of it, if one program did; `by_pid` if it was one process. Or `by` is its own CPU quota.
    """

    how: str
    from_ns: int
    to_ns: int
    core: int | None = None
    by: str | None = None
    by_pid: int | None = None
    by_cgroup: str | None = None

    @property
    def words(self) -> str:
        return _WORDS[self.how]

    @property
    def by_words(self) -> str:
        return "was used up" if self.is_throttled else _BY_WORDS[self.how]

    @property
    def is_throttled(self) -> bool:
        return self.by is not None and self.by.startswith(QUOTA_OF)


@dataclass(frozen=True, slots=True)
class Member:
    """A process that is part of a job. Times are the collector's where clocks were compared."""

    node: str
    job: str
    kind: str
    role: str
    pid: int
    comm: str
    started_ns: int
    rank: int | None = None
    world_size: int | None = None
    attempt: int | None = None
    cgroup: str | None = None
    leader: str | None = None
    address: str | None = None
    cores: int | None = None
    gpus: int | None = None
    ended_ns: int | None = None
    status: int | None = None
    words: str | None = None
    peer: str | None = None
    stop: Stop | None = None
    seen_ns: int = 0

    @property
    def name(self) -> str:
        return f"{self.role} {self.rank}" if self.rank is not None else f"{self.role} {self.comm}"

    @property
    def signal(self) -> int:
        """That ended it, 0 if none did; a shell reports it as exit code 128 and more."""
        status = self.status or 0
        code = status >> 8
        return status & 0x7F or (code - 128 if 128 < code < 128 + 32 else 0)

    @property
    def has_failed(self) -> bool:
        """Kernels before 6.15 report only to the parent how a process ended: then its last words
        count.
        """
        return bool(self.status) if self.status is not None else self.words is not None

    def shifted(self, by_ns: int) -> "Member":
        """On another clock."""
        stop = self.stop
        if stop is not None:
            stop = replace(stop, from_ns=stop.from_ns + by_ns, to_ns=stop.to_ns + by_ns)
        ended_ns = None if self.ended_ns is None else self.ended_ns + by_ns
        started_ns, seen_ns = self.started_ns + by_ns, self.seen_ns + by_ns
        return replace(self, stop=stop, ended_ns=ended_ns, started_ns=started_ns, seen_ns=seen_ns)

    def as_json(self) -> dict[str, Any]:
        stop = None
        if self.stop is not None:
            span = Span(self.stop.from_ns, self.stop.to_ns).as_json()
            stop = {"how": self.stop.how, **span, "core": self.stop.core, "by": self.stop.by}
        return {
            "node": self.node,
            "role": self.role,
            "rank": self.rank,
            "pid": self.pid,
            "comm": self.comm,
            "started": format_moment(self.started_ns),
            "ended": None if self.ended_ns is None else format_moment(self.ended_ns),
            "status": self.status,
            "words": self.words,
            "stop": stop,
        }


@dataclass(frozen=True, slots=True)
class NodeEvent:
    """Something that happened on a node. Only what the kernel wrote is believed of others."""

    time_ns: int
    kind: str
    message: str
    by_kernel: bool = False
    pid: int | None = None
    core: int | None = None
    device: str | None = None


@dataclass(frozen=True, slots=True)
class NodeIncident(Lasting):
    """A verdict of the node itself."""

    id: str
    from_ns: int
    to_ns: int
    core: int | None
    cause: str
    confidence: float
    summary: str
    culprit: str | None = None
    culprit_pid: int | None = None
    culprit_cgroup: str | None = None
    origin: str | None = None

    @property
    def is_sure(self) -> bool:
        return self.cause != UNKNOWN and self.confidence >= _SURE


@dataclass(frozen=True, slots=True)
class JobNode:
    """What is known of a node in the time of a job, on the same clock as its members.
    `clock_error_ns` is how far its clock may be off after that; None: it was not compared.
    `recorded` is what its recorder saw.
    """

    node: str
    recorded: Span
    clock_error_ns: int | None = None
    events: tuple[NodeEvent, ...] = ()
    incidents: tuple[NodeIncident, ...] = ()

    def shifted(self, by_ns: int) -> "JobNode":
        """On another clock."""
        recorded = Span(self.recorded.from_ns + by_ns, self.recorded.to_ns + by_ns)
        events = tuple(replace(one, time_ns=one.time_ns + by_ns) for one in self.events)
        incidents = tuple(
            replace(one, from_ns=one.from_ns + by_ns, to_ns=one.to_ns + by_ns)
            for one in self.incidents
        )
        return replace(self, recorded=recorded, events=events, incidents=incidents)

    @property
    def error_ns(self) -> int:
        return UNMEASURED_ERROR_NS if self.clock_error_ns is None else self.clock_error_ns


class OfMembers:
    """When and where a job ran, by those of its members that are known."""

    __slots__ = ()
    members: tuple[Member, ...]

    @property
    def from_ns(self) -> int:
        return min(member.started_ns for member in self.members)

    @property
    def to_ns(self) -> int:
        return max(member.ended_ns or member.seen_ns for member in self.members)

    @property
    def nodes(self) -> list[str]:
        return sorted({member.node for member in self.members})
