"""`fleet trial`: which of two groups of nodes was hit since a treatment began, hit by hit, and what
that says of the treatment.
"""

import re
from dataclasses import dataclass
from typing import Any, Final

from necroscope.errors import UsageError
from necroscope.fleet.ask import LakeQuestions
from necroscope.fleet.cohorts.sequential import TrialHit, TrialResult, judge_trial
from necroscope.fleet.lake_tables import DAY_NS, NodeKey
from necroscope.fleet.questions.occurrences import Subject, read_moments
from necroscope.fleet.questions.presence import Presence, read_presence
from necroscope.model.span import Span

SCHEMA: Final = 1
_NODE: Final = re.compile(r"([\w.-]+)/([\w.-]+)@(\d{1,20})")
_MOST_NODES: Final = 5_000


@dataclass(frozen=True, slots=True)
class TrialAnswer:
    about: Subject
    span: Span
    treated: int
    untreated: int
    result: TrialResult

    def as_json(self) -> dict[str, Any]:
        result = self.result
        high = "more" if result.high == float("inf") else f"{result.high:.0%}"
        return {
            "schema": SCHEMA,
            "about": self.about.as_json(),
            **self.span.as_json(),
            "treated": self.treated,
            "untreated": self.untreated,
            **{
                name: None if value == float("inf") else value
                for name, value in result.as_json().items()
            },
            "summary": (
                f"{result.finding}: {result.hits_treated} of {self.treated} treated nodes and"
                f" {result.hits_untreated} of {self.untreated} untreated ones had {self.about};"
                f" the rate is {result.low:.0%} to {high} of what it is without"
            ),
        }


def parse_nodes(text: str) -> dict[NodeKey, int]:
    """`cluster/node@ns, ...`: since when each takes part."""
    found: dict[NodeKey, int] = {}
    for word in filter(None, (each.strip() for each in text.split(","))):
        match = _NODE.fullmatch(word)
        if match is None:
            raise UsageError(
                f"{word[:80]!r} is not a node of a trial", "write cluster/node@nanoseconds"
            )
        found[match[1], match[2]] = int(match[3])
    if len(found) > _MOST_NODES:
        raise UsageError(f"{len(found):,} nodes are too many", f"at most {_MOST_NODES:,}")
    return found


def trial(
    questions: LakeQuestions,
    subject: Subject,
    treated: dict[NodeKey, int],
    untreated: dict[NodeKey, int],
    until_ns: int,
) -> TrialAnswer:
    """Each node takes part from its moment until its first hit, or until it falls silent."""
    entered = {**treated, **untreated}
    if not treated or not untreated:
        raise UsageError(
            "a trial needs treated and untreated nodes", "see: fleet trial plan --help"
        )
    span = Span(min(entered.values()), max(until_ns, min(entered.values()) + 1))
    presence = read_presence(questions, span)
    left = {node: _last_heard_ns(presence, node, span) for node in entered}
    first = {
        node: moment
        for node, moments in read_moments(questions, subject, span).items()
        if node in entered
        and (moment := next((each for each in moments if each >= entered[node]), None)) is not None
    }
    hits = [
        _hit(node, moment, treated, entered, left, first)
        for node, moment in sorted(first.items(), key=lambda item: (item[1], item[0]))
    ]
    return TrialAnswer(subject, span, len(treated), len(untreated), judge_trial(hits))


def _last_heard_ns(presence: Presence, node: NodeKey, span: Span) -> int:
    """The end of the last day on which it was heard of."""
    days = [day_ns for day_ns, nodes in presence.days if node in nodes]
    return max(days) + DAY_NS if days else span.from_ns


def _hit(
    node: NodeKey,
    moment: int,
    treated: dict[NodeKey, int],
    entered: dict[NodeKey, int],
    left: dict[NodeKey, int],
    first: dict[NodeKey, int],
) -> TrialHit:
    """Who could have been hit at this moment."""
    at_risk = [
        other
        for other, entered_ns in entered.items()
        if other == node
        or (entered_ns <= moment < left[other] and first.get(other, moment) >= moment)
    ]
    with_it = sum(other in treated for other in at_risk)
    return TrialHit(node in treated, with_it, len(at_risk) - with_it)
