"""Members of jobs out of the lake, on the collector's clock: each process once, as last reported.

Every row carries what the collector measured of its node's clock when it came, so nodes whose
clocks are off are put right before anything is compared.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import pyarrow as pa

from necroscope.analysis.jobs.member import Member, Stop
from necroscope.analysis.jobs.runs import SAME_START_NS, JobRun, runs
from necroscope.fleet.ask import LakeQuestions, View
from necroscope.model.span import Span
from necroscope.model.units import NS_PER_S

_HOUR_NS: Final = 3600 * NS_PER_S
# A member that lives is reported once per hour, by the first segment of it.
_REPEAT_NS: Final = _HOUR_NS + 600 * NS_PER_S
_MEMBER: Final = (
    "job", "kind", "role", "pid", "comm", "started_ns", "rank", "world_size", "attempt", "cgroup",
    "leader", "address", "cores", "gpus", "ended_ns", "status", "words", "peer",
)  # fmt: skip
_STOP: Final = (
    "stop_how", "stop_from", "stop_to", "stop_core", "stop_by", "stop_by_pid", "stop_by_cgroup",
)  # fmt: skip
_CLOCK: Final = ("clock_offset_ns", "clock_error_ns")
_COLUMNS: Final = (*_MEMBER, *_STOP, *_CLOCK, "analysed_ns")
_NEWEST: Final = f"""
SELECT cluster, node, time, {", ".join(_MEMBER)}, {", ".join(_STOP)}, {", ".join(_CLOCK)}
FROM job_members {{}}
QUALIFY row_number() OVER (
    PARTITION BY cluster, node, job, pid, started_ns
    ORDER BY ended_ns IS NOT NULL DESC, time DESC, analysed_ns DESC
) = 1
"""
_JOBS: Final = pa.schema([("cluster", pa.string()), ("job", pa.string())])
_FEW: Final = 64
JobKey = tuple[str, str]
# Of one name, or that failed last: the newest of them is shown.
_MOST_NAMED: Final = 16


class JobsInTime(NamedTuple):
    """`span` holds all that the lake has of them, in as few days as possible."""

    jobs: list[JobKey]
    span: Span


class NodeClock(NamedTuple):
    """The collector's clock minus the node's, and how far that may be off; None: not measured."""

    offset_ns: int
    error_ns: int | None


@dataclass(slots=True)
class ClusterRuns:
    """Runs of jobs of one cluster, and the clocks of its nodes when they were reported."""

    cluster: str
    runs: list[JobRun] = field(default_factory=list)
    clocks: dict[str, NodeClock] = field(default_factory=dict)


def read_runs(
    questions: LakeQuestions, span: Span, jobs: Iterable[JobKey] | None = None
) -> list[ClusterRuns]:
    """All, or those of some jobs with what their Ray clusters share, by cluster."""
    wanted = None if jobs is None else _with_clusters(jobs)
    tables, chosen, parameters = _choice(wanted)
    rows = questions.rows(
        _NEWEST.format(chosen), {"job_members": View(span, _COLUMNS)}, parameters, tables
    )
    found: dict[str, ClusterRuns] = {}
    members: dict[str, list[Member]] = {}
    for cluster, node, time_ns, *values in rows:
        member, clock = _member(node, time_ns, values, questions.now_ns)
        members.setdefault(cluster, []).append(member)
        found.setdefault(cluster, ClusterRuns(cluster)).clocks[node] = clock
    for cluster, own in members.items():
        found[cluster].runs = runs(_each_once(own))
    return [found[cluster] for cluster in sorted(found)]


def _with_clusters(jobs: Iterable[JobKey]) -> set[JobKey]:
    """And what is above them: a Ray cluster is part of each of its jobs."""
    return {
        (cluster, name) for cluster, job in jobs for name in (job, job.rpartition("/")[0]) if name
    }


def _choice(wanted: set[JobKey] | None) -> tuple[dict[str, pa.Table], str, list[str]]:
    """As SQL. Few names are compared while files are read, which a join is not."""
    if wanted is None:
        return {}, "", []
    keys = sorted(wanted)
    columns = [pa.array([key[place] for key in keys], pa.string()) for place in (0, 1)]
    joined = "SEMI JOIN wanted USING (cluster, job)"
    names = sorted({job for _, job in keys})
    if len(names) > _FEW:
        names = []
    compared = f" WHERE job IN ({', '.join('?' for _ in names)})" if names else ""
    return {"wanted": pa.table(columns, _JOBS)}, joined + compared, names


def read_failed_jobs(questions: LakeQuestions, span: Span) -> list[JobKey]:
    """Jobs of which a member failed in the span."""
    query = "SELECT DISTINCT cluster, job FROM job_members WHERE status <> 0 ORDER BY ALL"
    return list(questions.rows(query, {"job_members": View(span, ("job", "pid", "status"))}))


def read_named_jobs(questions: LakeQuestions, span: Span, name: str) -> JobsInTime:
    """Jobs of that id, or whose id ends in it. The exact id is looked for first: it is compared
    while files are read.
    """
    found = _jobs_in_time(questions, span, "job = ?", name)
    if not found.jobs:
        found = _jobs_in_time(questions, span, "ends_with(job, ?)", f"/{name}")
    return JobsInTime(_with_numbers(questions, found), found.span)


def _with_numbers(questions: LakeQuestions, found: JobsInTime) -> list[JobKey]:
    """And the jobs under the other id that Ray gave them, if they were submitted to it."""
    if not any(job.startswith("ray/") for _, job in found.jobs):
        return found.jobs
    tables, chosen, names = _choice(set(found.jobs))
    view = View(found.span, ("job", "kind", "role", "pid", "started_ns"))
    query = f"""
        SELECT DISTINCT others.cluster, others.job FROM job_members AS others
        SEMI JOIN (SELECT * FROM job_members {chosen}) AS own
            ON others.cluster = own.cluster AND others.node = own.node AND others.pid = own.pid
            AND others.kind = 'ray' AND others.role = 'driver'
            AND own.kind = 'ray' AND own.role = 'driver'
            AND abs(others.started_ns - own.started_ns) <= {SAME_START_NS}
        ORDER BY ALL"""
    others = questions.rows(query, {"job_members": view}, names, tables)
    return sorted({*found.jobs, *((cluster, job) for cluster, job in others)})


def read_last_failed_jobs(questions: LakeQuestions, span: Span) -> JobsInTime:
    """The last few of which a member failed."""
    return _jobs_in_time(questions, span, "status <> ?", 0)


def _jobs_in_time(
    questions: LakeQuestions, span: Span, condition: str, value: str | int
) -> JobsInTime:
    """A cluster that they are part of is reported every hour, and so is a member that lives."""
    query = (
        f"SELECT cluster, job, min(time), max(time) FROM job_members WHERE {condition}"
        " GROUP BY ALL ORDER BY max(time + coalesce(clock_offset_ns, 0)) DESC, cluster, job LIMIT ?"
    )
    view = View(span, ("job", "pid", "status", "clock_offset_ns"))
    rows = questions.rows(query, {"job_members": view}, [value, _MOST_NAMED])
    jobs = [(cluster, job) for cluster, job, *_ in rows]
    if not rows:
        return JobsInTime(jobs, span)
    from_ns = min(first_ns for *_, first_ns, _ in rows) - 2 * _HOUR_NS
    to_ns = max(last_ns for *_, last_ns in rows) + 2 * _HOUR_NS
    return JobsInTime(jobs, Span(max(span.from_ns, from_ns), min(span.to_ns, to_ns)))


def read_newest_jobs(questions: LakeQuestions, span: Span, most: int) -> list[JobKey]:
    """The ids that were reported last, to say what there is."""
    query = "SELECT cluster, job FROM job_members GROUP BY ALL ORDER BY max(time) DESC LIMIT ?"
    return list(questions.rows(query, {"job_members": View(span, ("job", "pid"))}, [most]))


def _member(
    node: str, time_ns: int, values: Sequence[Any], now_ns: int
) -> tuple[Member, NodeClock]:
    fields = dict(zip(_MEMBER, values, strict=False))
    how, *standing = values[len(_MEMBER) : len(_MEMBER) + len(_STOP)]
    clock = NodeClock(values[-2] or 0, values[-1])
    by_ns = clock.offset_ns
    stop = None
    if how is not None and standing[0] is not None and standing[1] is not None:
        stop = Stop(how, standing[0] + by_ns, standing[1] + by_ns, *standing[2:])
    seen_ns = _last_seen_ns(fields, time_ns, now_ns - by_ns) + by_ns
    fields["started_ns"] += by_ns
    if fields["ended_ns"] is not None:
        fields["ended_ns"] += by_ns
    return Member(node=node, stop=stop, seen_ns=seen_ns, **fields), clock


def _last_seen_ns(fields: Mapping[str, Any], time_ns: int, now_ns: int) -> int:
    """Up to when it is known to have lived: without an end until its next row would have come."""
    ended_ns = fields["ended_ns"]
    return int(ended_ns) if ended_ns is not None else min(time_ns + _REPEAT_NS, now_ns)


def _each_once(members: Iterable[Member]) -> list[Member]:
    """A recorder that was started again finds the same process, and its start a moment off."""
    found: dict[tuple[str, str, int], list[Member]] = {}
    for member in sorted(members, key=lambda one: one.started_ns):
        same = found.setdefault((member.node, member.job, member.pid), [])
        if same and member.started_ns - same[-1].started_ns <= SAME_START_NS:
            if (member.ended_ns is not None, member.seen_ns) > (
                same[-1].ended_ns is not None,
                same[-1].seen_ns,
            ):
                same[-1] = member
        else:
            same.append(member)
    return [member for same in found.values() for member in same]
