"""`fleet jobs`: which jobs there were, how they ended, whose fault it was, and how often they
succeed by any difference between the nodes they ran on.
"""

from collections import Counter
from typing import Any, Final

from necroscope.analysis.interval import wilson
from necroscope.analysis.jobs.story import MACHINE
from necroscope.errors import UsageError
from necroscope.fleet.ask import LakeQuestions
from necroscope.fleet.questions.job_outcomes import (
    FAILED,
    SUCCEEDED,
    EndedJob,
    read_ended_jobs,
)
from necroscope.fleet.questions.node_choice import NodeIndex, choose
from necroscope.model.span import Span

SCHEMA: Final = 1
_KIND: Final = "kind"
_MOST_VALUES: Final = 100


def jobs(
    questions: LakeQuestions,
    span: Span,
    where: str | None = None,
    by: str = _KIND,
    limit: int = 100,
) -> dict[str, Any]:
    """The newest first, of those that ran on a chosen node; rates are of all."""
    nodes = None if where is None else choose(questions, where, span)
    ended = read_ended_jobs(questions, span, nodes)
    return {
        "schema": SCHEMA,
        **span.as_json(),
        "where": where,
        "by": by,
        "count": len(ended),
        "outcomes": dict(Counter(one.outcome for one in ended).most_common()),
        "blames": dict(Counter(one.blame for one in ended if one.blame).most_common()),
        "rates": _rates(questions, span, ended, by),
        "jobs": [one.as_json() for one in reversed(ended[-limit:])],
    }


def _rates(
    questions: LakeQuestions, span: Span, ended: list[EndedJob], by: str
) -> list[dict[str, Any]]:
    """A job counts once under each value that the nodes it ran on have."""
    values = {} if by == _KIND else NodeIndex(questions, span).values(by)
    if by != _KIND and ended and not values:
        raise UsageError(
            f"no node has a label or fact {by!r}",
            "kind, cluster, node, a label, or kind:name of a fact; see: necroscope fleet diff A B",
        )
    counts: dict[str | None, list[int]] = {}
    for one in ended:
        if one.outcome not in (FAILED, SUCCEEDED):
            continue
        names: set[str | None] = (
            {one.run.members[0].kind}
            if by == _KIND
            else {values.get((one.cluster, node)) for node in one.run.nodes}
        )
        for name in names:
            row = counts.setdefault(name, [0, 0, 0])
            row[0] += one.outcome == SUCCEEDED
            row[1] += 1
            row[2] += one.blame == MACHINE
    ordered = sorted(counts.items(), key=lambda item: (-item[1][1], item[0] or ""))
    return [_rate(name, *row) for name, row in ordered[:_MOST_VALUES]]


def _rate(name: str | None, success: int, runs: int, by_machine: int) -> dict[str, Any]:
    low, high = wilson(success, runs)
    rate = success / runs
    return {
        "value": name, "runs": runs, "success": success, "by_machine": by_machine,
        "rate": rate, "low": low, "high": high,
    }  # fmt: skip
