"""`fleet job`: why a job died, from its last line to the core, what that cost, and which other jobs
the same cause hit in the week before.
"""

from typing import Any, Final

from necroscope.analysis.jobs.blame import outcome_of
from necroscope.analysis.jobs.member import HELD
from necroscope.analysis.jobs.runs import choose
from necroscope.analysis.jobs.story import MACHINE, JobStory
from necroscope.errors import UsageError
from necroscope.fleet.ask import LakeQuestions, View
from necroscope.fleet.questions.job_members import (
    JobsInTime,
    read_failed_jobs,
    read_last_failed_jobs,
    read_named_jobs,
    read_newest_jobs,
    read_runs,
)
from necroscope.fleet.questions.job_stories import ClusterRun, find_job_stories, list_runs
from necroscope.fleet.questions.newest_incidents import NEWEST_INCIDENTS
from necroscope.model.span import Span
from necroscope.model.units import NS_PER_S

_WEEK_NS: Final = 7 * 86_400 * NS_PER_S
_DAY_NS: Final = 86_400 * NS_PER_S
_MOST_LISTED: Final = 12
_MOST_ALIKE: Final = 20
_HIT: Final = f"""
SELECT DISTINCT members.cluster, members.job
FROM job_members AS members JOIN ({NEWEST_INCIDENTS}) AS found USING (cluster, node)
WHERE cause = ? AND stop_how IN ({", ".join(f"'{how}'" for how in sorted(HELD))})
    AND found.time <= stop_to AND found."end" >= stop_from
ORDER BY ALL
"""


def job(
    questions: LakeQuestions, name: str | None, span: Span, at_ns: int | None = None
) -> dict[str, Any]:
    """By its id or the end of it, the newest run or the one at a moment; without a name the one
    that failed last.
    """
    if name is not None:
        named = read_named_jobs(questions, span, name)
    elif at_ns is None:
        named = read_last_failed_jobs(questions, span)
    else:
        around = Span(max(span.from_ns, at_ns - _DAY_NS), min(span.to_ns, at_ns + _DAY_NS))
        named = JobsInTime(read_failed_jobs(questions, around), around)
    found = list_runs(read_runs(questions, named.span, named.jobs)) if named.jobs else []
    if name is None:
        found = [one for one in found if outcome_of(one.run.members) == "failed"]
    if not found:
        raise _nothing(questions, span, name)
    run = choose([one.run for one in found], name, at_ns)
    chosen = next(one for one in found if one.run is run)
    [story] = find_job_stories(questions, [chosen])
    answer = story.as_json()
    alike = jobs_alike(questions, chosen, story)
    cost = answer["cost"] | {
        "jobs_this_week": None if alike is None else len(alike),
        "alike": [_alike(one, other) for one, other in (alike or [])[:_MOST_ALIKE]],
    }
    return {**answer, "cluster": chosen.cluster, "cost": cost}


def jobs_alike(
    questions: LakeQuestions, chosen: ClusterRun, story: JobStory
) -> list[tuple[ClusterRun, JobStory]] | None:
    """Other runs that ended in the week before it, and that the same cause killed; None where no
    cause is named.
    """
    if story.blame != MACHINE or story.incident is None:
        return None
    week = Span(max(0, story.to_ns - _WEEK_NS), story.to_ns + NS_PER_S)
    # By the nodes' own clocks, which may be off.
    wide = Span(max(0, week.from_ns - _DAY_NS), week.to_ns + _DAY_NS)
    views = {
        "job_members": View(wide, ("job", "pid", "stop_how", "stop_from", "stop_to")),
        "incidents": View(wide, ("id", "end", "cause", "analysed_ns")),
    }
    hit = [(cluster, job) for cluster, job in questions.rows(_HIT, views, [story.incident.cause])]
    found = [
        one
        for one in list_runs(read_runs(questions, wide, hit) if hit else [])
        if (one.cluster, one.run.job) in set(hit)
        and week.contains(one.run.to_ns)
        and (one.cluster, one.run.job, one.run.from_ns)
        != (chosen.cluster, chosen.run.job, chosen.run.from_ns)
    ]
    stories = zip(found, find_job_stories(questions, found), strict=True)
    return [
        (one, other)
        for one, other in stories
        if other.blame == MACHINE
        and other.incident is not None
        and other.incident.cause == story.incident.cause
    ]


def _alike(found: ClusterRun, story: JobStory) -> dict[str, Any]:
    answer = story.as_json()
    kept = {name: answer[name] for name in ("job", "to", "node", "core", "culprit", "cost")}
    return {"cluster": found.cluster, **kept}


def _nothing(questions: LakeQuestions, span: Span, name: str | None) -> UsageError:
    if name is None:
        return UsageError(
            f"no job failed in the last {span.length}",
            "see: necroscope fleet jobs, or give --since",
        )
    there = [job for _, job in read_newest_jobs(questions, span, _MOST_LISTED)]
    hint = (
        f"the newest are: {', '.join(there)}"
        if there
        else "no job was pushed in this time; recorders send them with --push"
    )
    return UsageError(f"there is no job {name!r} in the last {span.length}", hint)
