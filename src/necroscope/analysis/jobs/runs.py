"""Which members are of one run: ids are used again, by torchrun without one, by Slurm after its
counter wraps, by Ray for the first job of every cluster. A job that was submitted to Ray has two.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from necroscope.analysis.jobs.member import Member, OfMembers
from necroscope.errors import UsageError
from necroscope.model.span import Span
from necroscope.model.units import NS_PER_S, format_moment

# Members that start later than this after all others have ended are another run's.
_APART_NS: Final = 30 * NS_PER_S
# The start of a process as two recorders of one node work it out.
SAME_START_NS: Final = 2 * NS_PER_S
_BEFORE_NS: Final = 300 * NS_PER_S
_AFTER_NS: Final = 60 * NS_PER_S
_RAY, _DRIVER = "ray", "driver"
SHARED_ROLES: Final = ("raylet", "gcs")
_RAY_NUMBER: Final = re.compile(r"ray/[^/]+/[0-9a-f]{8}")
_MOST_LISTED: Final = 12
_NO_JOB_HINT: Final = (
    "jobs of torchrun, Slurm, MPI, Kubernetes and Ray are found by themselves (docs/jobs.md); of"
    " another program ask for the moment it died: necroscope diagnose --at T"
)


@dataclass(frozen=True, slots=True)
class JobRun(OfMembers):
    """`submission` is the other id of a job that was submitted to Ray."""

    job: str
    members: tuple[Member, ...]
    submission: str | None = None

    def is_called(self, name: str) -> bool:
        """By one of its ids or the end of it."""
        ids = (self.job, self.submission or "")
        return any(job == name or job.endswith(f"/{name}") for job in ids)

    @property
    def end_span(self) -> Span:
        """The minutes around its end: what held a member began before its time-out."""
        ended = [one.ended_ns for one in self.members if one.ended_ns is not None]
        first_ns, last_ns = (min(ended), max(ended)) if ended else (self.to_ns, self.to_ns)
        return Span(max(0, first_ns - _BEFORE_NS), last_ns + _AFTER_NS)


def runs(members: Iterable[Member]) -> list[JobRun]:
    """In order of their start; raylets and the GCS of a cluster belong to each of its jobs."""
    by_job: dict[str, list[Member]] = {}
    known = list(members)
    numbers = _ray_numbers(known)
    for member in sorted(_once(known, numbers), key=lambda one: one.started_ns):
        by_job.setdefault(member.job, []).append(member)
    submissions = {number: submission for submission, number in numbers.items()}
    found = [
        JobRun(job, (*run, *_of_cluster(by_job, job, run)), submissions.get(job))
        for job, own in by_job.items()
        for run in _apart(own)
    ]
    return sorted(found, key=lambda run: run.from_ns)


def _ray_numbers(members: Iterable[Member]) -> dict[str, str]:
    """Of each submission the number that Ray gave the job: its driver is there under both."""
    drivers = [one for one in members if (one.kind, one.role) == (_RAY, _DRIVER)]
    numbered = {(one.node, one.pid): one for one in drivers if _RAY_NUMBER.fullmatch(one.job)}
    found = {}
    for one in drivers:
        other = numbered.get((one.node, one.pid))
        if other is not None and other.job != one.job and _is_one_process(one, other):
            found[one.job] = other.job
    return found


def _is_one_process(one: Member, other: Member) -> bool:
    return abs(one.started_ns - other.started_ns) <= SAME_START_NS


def _once(members: Iterable[Member], numbers: Mapping[str, str]) -> Iterator[Member]:
    """Under one name, and a driver that has two of them once."""
    drivers = {(one.node, one.pid) for one in members if one.job in numbers.values()}
    for one in members:
        number = numbers.get(one.job)
        if number is None:
            yield one
        elif (one.node, one.pid) not in drivers:
            yield replace(one, job=number)


def choose(found: Sequence[JobRun], name: str | None, at_ns: int | None = None) -> JobRun:
    """By its id or the end of it; the newest of several, or the one that was there at a moment."""
    named = [run for run in found if name is None or run.is_called(name)]
    if at_ns is not None:
        named = [run for run in named if run.from_ns <= at_ns <= run.to_ns]
    if not named:
        there = sorted({run.job for run in found})
        hint = f"there are: {', '.join(there[:_MOST_LISTED])}" if there else _NO_JOB_HINT
        when = f" at {format_moment(at_ns)}" if at_ns is not None else ""
        raise UsageError(
            f"there is no job {name!r}{when}" if name else "no job was recorded here", hint
        )
    return named[-1]


def _apart(members: Sequence[Member]) -> list[list[Member]]:
    """A rank that is there twice is another run's, once the first of them has ended."""
    found: list[list[Member]] = []
    for member in members:
        run = found[-1] if found else []
        over_ns = max((one.ended_ns or one.seen_ns for one in run), default=0)
        again = any(
            one.rank == member.rank is not None
            and one.attempt == member.attempt
            and one.ended_ns is not None
            and one.ended_ns < member.started_ns
            for one in run
        )
        if not run or again or member.started_ns > over_ns + _APART_NS:
            found.append([member])
        else:
            run.append(member)
    return found


def _of_cluster(by_job: dict[str, list[Member]], job: str, run: Sequence[Member]) -> list[Member]:
    cluster, is_ray, _ = job.rpartition("/")
    if not is_ray or run[0].kind != _RAY or cluster not in by_job:
        return []
    return [one for one in by_job[cluster] if one.role in SHARED_ROLES]
