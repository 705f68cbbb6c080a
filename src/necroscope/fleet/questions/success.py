"""How often units, stakeouts and jobs over nodes succeeded on nodes that changed, before and after
their change. A job over nodes counts by the nodes it ran on, wherever its line was written.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from necroscope.analysis.interval import wilson
from necroscope.fleet.ask import LakeQuestions, View
from necroscope.fleet.cohorts.fisher import fisher_greater
from necroscope.fleet.lake_tables import NodeKey
from necroscope.fleet.questions.fact_changes import Change
from necroscope.fleet.questions.job_outcomes import SUCCEEDED, EndedJob, read_outcomes
from necroscope.model.span import Span

_MOST: Final = 50
_CHANGED: Final = pa.schema(
    [
        ("cluster", pa.string()),
        ("node", pa.string()),
        ("at_ns", pa.int64()),
        ("until_ns", pa.int64()),
    ]
)
_COUNTS: Final = """
SELECT kind, name, time >= at_ns AS is_after, count(*) FILTER (outcome = 'success'), count(*)
FROM jobs JOIN changed USING (cluster, node) WHERE time < until_ns GROUP BY ALL
"""


@dataclass(frozen=True, slots=True)
class Ends:
    success: int
    runs: int

    def as_json(self) -> dict[str, Any]:
        low, high = wilson(self.success, self.runs)
        return {
            "success": self.success,
            "runs": self.runs,
            "rate": self.success / self.runs if self.runs else None,
            "low": low,
            "high": high,
        }


@dataclass(frozen=True, slots=True)
class JobRates:
    """`name` None: all jobs of the kind. `chance`: that success rose this much, or more, if nothing
    had changed.
    """

    kind: str
    name: str | None
    before: Ends
    after: Ends

    @property
    def chance(self) -> float:
        runs = self.before.runs + self.after.runs
        success = self.before.success + self.after.success
        return float(
            fisher_greater(
                np.array([self.after.success]), np.array([self.after.runs]), success, runs
            )[0]
        )

    def as_json(self) -> dict[str, Any]:
        words = {
            "kind": self.kind,
            "name": self.name,
            "before": self.before.as_json(),
            "after": self.after.as_json(),
        }
        return {**words, "chance": self.chance}


def read_success(
    questions: LakeQuestions, changes: Mapping[NodeKey, Change], span: Span
) -> tuple[JobRates, ...]:
    """Of each kind all jobs together first, then those that changed most."""
    rows = [(*node, *found) for node, found in changes.items()]
    columns = [
        pa.array([row[place] for row in rows], kind) for place, kind in enumerate(_CHANGED.types)
    ]
    found = questions.rows(
        _COUNTS, {"jobs": View(span)}, tables={"changed": pa.table(columns, schema=_CHANGED)}
    )
    counts: dict[tuple[str, str | None], list[int]] = {}
    for one in read_outcomes(questions, span):
        is_later = _is_after(one, changes)
        if is_later is not None:
            row = counts.setdefault((one.run.members[0].kind, None), [0, 0, 0, 0])
            row[2 * is_later] += one.outcome == SUCCEEDED
            row[2 * is_later + 1] += 1
    for kind, name, is_after, success, runs in found:
        for key in ((kind, None), (kind, name)):
            row = counts.setdefault(key, [0, 0, 0, 0])
            row[2 * is_after] += success
            row[2 * is_after + 1] += runs
    rates = [
        JobRates(kind, name, Ends(row[0], row[1]), Ends(row[2], row[3]))
        for (kind, name), row in counts.items()
    ]
    return tuple(sorted(rates, key=_display_order)[:_MOST])


def _is_after(job: EndedJob, changes: Mapping[NodeKey, Change]) -> bool | None:
    """None if it ran on no node that changed, while one changed, or after the change was undone."""
    own = [changes[key] for node in job.run.nodes if (key := (job.cluster, node)) in changes]
    if not own or any(job.run.to_ns >= each.until_ns for each in own):
        return None
    if all(job.run.to_ns < each.at_ns for each in own):
        return False
    return True if all(job.run.from_ns >= each.at_ns for each in own) else None


def _display_order(rates: JobRates) -> tuple[bool, float, str, str]:
    both = rates.before.runs and rates.after.runs
    change = (
        abs(rates.after.success / rates.after.runs - rates.before.success / rates.before.runs)
        if both
        else -1.0
    )
    return rates.name is not None, -change, rates.kind, rates.name or ""
