"""`fleet why`: which difference between the nodes goes with an event or a cause.

Facts are taken as they stood before an affected node's first event: what changed after it cannot
have been its cause. The other nodes are each looked at at the moment of an affected one, in turn,
so that a change that all got in between favours no side.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import compress, cycle
from typing import Any, Final

import numpy as np

from necroscope.errors import UsageError
from necroscope.fleet.ask import LakeQuestions, View
from necroscope.fleet.cohorts.columns import FactMatrix, Flags
from necroscope.fleet.cohorts.decision import Decision, decide
from necroscope.fleet.cohorts.dose import Dose, find_doses
from necroscope.fleet.cohorts.experiment import experiments
from necroscope.fleet.fact_matrix import read_fact_matrix, with_clusters, without_facts
from necroscope.fleet.lake_tables import NodeKey
from necroscope.fleet.questions.dose_words import dose_summary, rate_words
from necroscope.fleet.questions.doses import read_time_at_risk
from necroscope.fleet.questions.node_choice import choose
from necroscope.fleet.questions.occurrences import Occurrences, Subject, read_occurrences
from necroscope.fleet.questions.origins import read_origins
from necroscope.fleet.questions.presence import Presence, read_presence
from necroscope.fleet.questions.why_words import standing, summary, verdict_notes
from necroscope.model.span import Span
from necroscope.model.units import NS_PER_S

SCHEMA: Final = 1
# Facts come in stages after a recorder starts.
_SETTLED_NS: Final = 600 * NS_PER_S


@dataclass(frozen=True, slots=True)
class HitRates:
    """How often it happened on nodes with the first difference and on the others, in the time that
    they were heard of.
    """

    times_with: int
    days_with: float
    times_without: int
    days_without: float

    def as_json(self) -> dict[str, Any]:
        return {
            side: {
                "times": times,
                "node_days": round(days, 2),
                "per_node_day": times / days if days else None,
            }
            for side, times, days in (
                ("with", self.times_with, self.days_with),
                ("without", self.times_without, self.days_without),
            )
        }


@dataclass(frozen=True, slots=True)
class WhyAnswer:
    """`doses` are of the nodes that have what was named, or of all where nothing was."""

    about: Subject
    span: Span
    where: str | None
    decision: Decision
    times: int
    rates: HitRates | None
    doses: tuple[Dose, ...]
    notes: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        decision = self.decision
        first = decision.first
        return {
            "schema": SCHEMA,
            "about": self.about.as_json(),
            **self.span.as_json(),
            "where": self.where,
            "outcome": decision.outcome,
            "doubt": decision.doubt,
            "decided_by": decision.decided_by,
            "mechanism": None if decision.mechanism is None else decision.mechanism.as_json(),
            "summary": summary(decision, str(self.about)),
            "nodes": decision.nodes,
            "affected": decision.affected,
            "times": self.times,
            "differences": decision.asked,
            "rates": None if self.rates is None else self.rates.as_json(),
            "dose_summary": dose_summary(self.doses, str(self.about)),
            "doses": [{**each.as_json(), "words": rate_words(each)} for each in self.doses],
            "leaders": (
                [{**each.as_json(), "words": standing(each, first)} for each in decision.leaders]
                if first
                else []
            ),
            "experiments": experiments(decision, self.span.length),
            "left_out": [
                {"facts": count, "reason": reason} for reason, count in decision.left_out.items()
            ],
            "notes": list(self.notes),
        }


def why(
    questions: LakeQuestions, subject: Subject, span: Span, where: str | None = None
) -> WhyAnswer:
    happened = read_occurrences(questions, subject, span)
    presence = read_presence(questions, span)
    seen = presence.nodes() | happened.keys()
    if where is not None:
        seen &= choose(questions, where, span)
        happened = {node: each for node, each in happened.items() if node in seen}
        if not seen:
            raise UsageError(f"no node is chosen by {where!r}", "see: necroscope fleet nodes")
    keys = sorted(seen)
    matrix, notes = _facts(questions, keys, happened)
    affected = np.array([key in happened for key in keys], np.bool_)
    known = ~without_facts(matrix)
    more = _describe_unknown(known, affected)
    matrix, affected = _keep_nodes(matrix, known), affected[known]
    keys = list(compress(keys, known))
    origins = read_origins(questions, subject, span, keys)
    decision = decide(matrix, affected, origins)
    more += verdict_notes(decision, affected, origins)
    carriers = _carriers(decision, keys)
    moments = {key: each.moments for key, each in happened.items()}
    risk = read_time_at_risk(questions, moments, span, carriers)
    return WhyAnswer(
        subject,
        span,
        where,
        decision,
        sum(each.times for each in happened.values()),
        _rates(decision, carriers, keys, happened, presence, span),
        () if risk is None else find_doses(risk),
        (*notes, *more),
    )


def _carriers(decision: Decision, keys: list[NodeKey]) -> list[NodeKey]:
    """The nodes that have what was named; all where nothing was."""
    first = decision.first
    if decision.doubt is not None or first is None:
        return keys
    return list(compress(keys, first.candidate.has.tolist()))


def _rates(
    decision: Decision,
    carriers: list[NodeKey],
    keys: list[NodeKey],
    happened: Mapping[NodeKey, Occurrences],
    presence: Presence,
    span: Span,
) -> HitRates | None:
    if decision.doubt is not None:
        return None
    with_it = frozenset(carriers)
    without = frozenset(keys) - with_it
    times = [
        sum(each.times for key, each in happened.items() if key in side)
        for side in (with_it, without)
    ]
    days = [presence.node_days(side, span) for side in (with_it, without)]
    return HitRates(times[0], days[0], times[1], days[1])


def _facts(
    questions: LakeQuestions, keys: list[NodeKey], happened: Mapping[NodeKey, Occurrences]
) -> tuple[FactMatrix, list[str]]:
    moments = _moments(keys, happened)
    matrix = _read(questions, moments)
    late = [
        key
        for key, is_unknown in zip(keys, without_facts(matrix).tolist(), strict=True)
        if is_unknown
    ]
    first_ns = _first_facts(questions, late, Span(0, questions.now_ns))
    if not first_ns:
        return with_clusters(matrix, keys), []
    matrix = _read(
        questions, moments | {key: time_ns + _SETTLED_NS for key, time_ns in first_ns.items()}
    )
    failed = sum(key in happened for key in first_ns)
    note = (
        f"{failed} affected nodes sent their first facts only after their first event: those facts"
        " are used"
        if failed
        else ""
    )
    return with_clusters(matrix, keys), [note] if note else []


def _read(questions: LakeQuestions, moments: Mapping[NodeKey, int]) -> FactMatrix:
    return questions.again_if_merged(
        lambda: read_fact_matrix(questions.lake, moments, questions.clusters)
    )


def _moments(
    keys: Iterable[NodeKey], happened: Mapping[NodeKey, Occurrences]
) -> dict[NodeKey, int]:
    """Of an affected node the last moment before it happened; of the others such a moment of
    another, in turn.
    """
    turns = cycle(sorted(each.first_ns for each in happened.values()) or [0])
    return {key: (happened[key].first_ns if key in happened else next(turns)) - 1 for key in keys}


def _first_facts(questions: LakeQuestions, late: list[NodeKey], span: Span) -> dict[NodeKey, int]:
    if not late:
        return {}
    wanted = set(late)
    rows = questions.rows(
        "SELECT cluster, node, min(time) FROM facts GROUP BY ALL", {"facts": View(span, ())}
    )
    return {
        (cluster, node): time_ns for cluster, node, time_ns in rows if (cluster, node) in wanted
    }


def _describe_unknown(known: Flags, affected: Flags) -> list[str]:
    """A node of which nothing is known tells nothing."""
    if known.all():
        return []
    failed = int(affected[~known].sum())
    note = f"{int((~known).sum())} of {len(known)} nodes sent no facts and are left out"
    return [f"{note}, {failed} affected ones among them"]


def _keep_nodes(matrix: FactMatrix, kept: Flags) -> FactMatrix:
    if kept.all():
        return matrix
    return replace(
        matrix,
        nodes=list(compress(matrix.nodes, kept)),
        pair=np.ascontiguousarray(matrix.pair[:, kept]),
    )
