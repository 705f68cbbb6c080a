"""Which members are of one run: ids are used again, by torchrun without one, by Slurm after its
counter wraps, by Ray for the first job of every cluster.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from necroscope.analysis.jobs.member import Member, OfMembers
from necroscope.errors import UsageError
from necroscope.model.span import Span
from necroscope.model.units import NS_PER_S, format_moment

# Members that start later than this after all others have ended are another run's.
_APART_NS: Final = 30 * NS_PER_S
_BEFORE_NS: Final = 300 * NS_PER_S
_AFTER_NS: Final = 60 * NS_PER_S
_RAY: Final = "ray"
_SHARED_ROLES: Final = ("raylet", "gcs")
_MOST_TOLD: Final = 12
_NO_JOB_HINT: Final = (
    "jobs of torchrun, Slurm, MPI, Kubernetes and Ray are found by themselves (docs/jobs.md); of"
    " another program ask for the moment it died: necroscope diagnose --at T"
)


@dataclass(frozen=True, slots=True)
class JobRun(OfMembers):
    job: str
    members: tuple[Member, ...]

    @property
    def end_span(self) -> Span:
        """The minutes around its end: what held a member began before its time-out."""
        ended = [one.ended_ns for one in self.members if one.ended_ns is not None]
        first_ns, last_ns = (min(ended), max(ended)) if ended else (self.to_ns, self.to_ns)
        return Span(max(0, first_ns - _BEFORE_NS), last_ns + _AFTER_NS)


def runs(members: Iterable[Member]) -> list[JobRun]:
    """In order of their start; raylets and the GCS of a cluster belong to each of its jobs."""
    by_job: dict[str, list[Member]] = {}
    for member in sorted(members, key=lambda one: one.started_ns):
        by_job.setdefault(member.job, []).append(member)
    found = [
        JobRun(job, (*run, *_of_cluster(by_job, job, run)))
        for job, own in by_job.items()
        for run in _apart(own)
    ]
    return sorted(found, key=lambda run: run.from_ns)


def choose(found: Sequence[JobRun], name: str | None, at_ns: int | None = None) -> JobRun:
    """By its id or the end of it; the newest of several, or the one that was there at a moment."""
    named = [run for run in found if name is None or is_called(run.job, name)]
    if at_ns is not None:
        named = [run for run in named if run.from_ns <= at_ns <= run.to_ns]
    if not named:
        there = sorted({run.job for run in found})
        hint = f"there are: {', '.join(there[:_MOST_TOLD])}" if there else _NO_JOB_HINT
        when = f" at {format_moment(at_ns)}" if at_ns is not None else ""
        raise UsageError(
            f"there is no job {name!r}{when}" if name else "no job was recorded here", hint
        )
    return named[-1]


def is_called(job: str, name: str) -> bool:
    return job == name or job.endswith(f"/{name}")


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
    return [one for one in by_job[cluster] if one.role in _SHARED_ROLES]
