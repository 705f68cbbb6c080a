"""How the jobs of a lake ended and, of those that failed, whose fault it was and to which node the
chain leads.
"""

from dataclasses import dataclass
from typing import Any, Final

from necroscope.analysis.jobs.blame import outcome_of
from necroscope.analysis.jobs.runs import JobRun
from necroscope.analysis.jobs.story import MACHINE, JobStory
from necroscope.fleet.ask import LakeQuestions
from necroscope.fleet.lake_tables import NodeKey
from necroscope.fleet.questions.job_members import read_failed_jobs, read_runs
from necroscope.fleet.questions.job_stories import ClusterRun, find_job_stories, list_runs
from necroscope.model.span import Span
from necroscope.model.units import format_moment

FAILED, SUCCEEDED = "failed", "succeeded"
# A Ray cluster's own processes are part of each of its jobs, and no job.
_SHARED: Final = frozenset({"raylet", "gcs"})


@dataclass(frozen=True, slots=True)
class EndedJob:
    """`blame` and what it leads to are known of those that failed."""

    cluster: str
    run: JobRun
    outcome: str
    blame: str | None = None
    node: str | None = None
    cause: str | None = None
    held_ns: int | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "cluster": self.cluster,
            "job": self.run.job,
            "submission": self.run.submission,
            "kind": self.run.members[0].kind,
            "outcome": self.outcome,
            "blame": self.blame,
            "node": self.node,
            "cause": self.cause,
            "from": format_moment(self.run.from_ns),
            "to": format_moment(self.run.to_ns),
            "nodes": self.run.nodes,
        }


def read_ended_jobs(
    questions: LakeQuestions, span: Span, nodes: frozenset[NodeKey] | None = None
) -> list[EndedJob]:
    """In order of their end; those that ran on one of these nodes. Those that failed are
    reported.
    """
    found = [one for one in list_runs(read_runs(questions, span)) if _is_wanted(one, nodes)]
    return _list_ended(questions, found)


def read_outcomes(questions: LakeQuestions, span: Span) -> list[EndedJob]:
    """Those that succeeded or failed, without their stories."""
    found = [one for one in list_runs(read_runs(questions, span)) if _is_wanted(one, None)]
    ended = [EndedJob(one.cluster, one.run, outcome_of(one.run.members)) for one in found]
    return [one for one in ended if one.outcome in (FAILED, SUCCEEDED)]


def read_hit_nodes(questions: LakeQuestions, span: Span) -> dict[NodeKey, list[int]]:
    """Nodes to which the chains of failed jobs lead, each with the moments, in order, when a member
    was held there.
    """
    jobs = read_failed_jobs(questions, span)
    found = list_runs(read_runs(questions, span, jobs)) if jobs else []
    hit: dict[NodeKey, list[int]] = {}
    for one in _list_ended(questions, [one for one in found if _is_wanted(one, None)]):
        if one.blame == MACHINE and one.node is not None and one.held_ns is not None:
            hit.setdefault((one.cluster, one.node), []).append(one.held_ns)
    return {key: sorted(moments) for key, moments in sorted(hit.items())}


def _list_ended(questions: LakeQuestions, found: list[ClusterRun]) -> list[EndedJob]:
    outcomes = [outcome_of(one.run.members) for one in found]
    failed = [one for one, outcome in zip(found, outcomes, strict=True) if outcome == FAILED]
    stories = iter(find_job_stories(questions, failed))
    return [
        _ended_job(one, outcome, next(stories) if outcome == FAILED else None)
        for one, outcome in zip(found, outcomes, strict=True)
    ]


def _ended_job(found: ClusterRun, outcome: str, story: JobStory | None) -> EndedJob:
    if story is None:
        return EndedJob(found.cluster, found.run, outcome)
    first = story.first
    node = first.node if first else None
    cause = story.incident.cause if story.incident else None
    held_ns = first.stop.from_ns if first and first.stop else None
    return EndedJob(found.cluster, found.run, outcome, story.blame, node, cause, held_ns)


def _is_wanted(found: ClusterRun, nodes: frozenset[NodeKey] | None) -> bool:
    if all(member.role in _SHARED for member in found.run.members):
        return False
    return nodes is None or any((found.cluster, node) in nodes for node in found.run.nodes)
