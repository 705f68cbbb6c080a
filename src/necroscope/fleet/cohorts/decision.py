"""Which difference goes with the failures, which only seem to, and whether they can be told apart
at all.

A place is never named: if the leader is a place by another name, or if nodes that would tell the
two apart are too few, the nodes' own verdicts decide (see `mechanism`), and where they do not agree
either the answer is `cannot separate`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from necroscope.fleet.cohorts.candidates import PredictiveDifference, rank
from necroscope.fleet.cohorts.columns import FactMatrix, Flags
from necroscope.fleet.cohorts.fisher import log_factorials
from necroscope.fleet.cohorts.mechanism import (
    Mechanism,
    Origins,
    by_mechanism,
    named_by_verdicts,
)
from necroscope.fleet.cohorts.stratified import FourfoldTable, chance_given, table_of

# Things of a place that were not recorded (its power, its switches, its mirror), each as likely as
# a fact that was.
_UNRECORDED: Final = 10
# A difference is named only if it carries this much of the evidence.
SURE: Final = 0.95
# The share of false ones to be expected among all differences that are called striking.
FALSE_DISCOVERY: Final = 0.05
# A difference keeps something of its own apart from another if chance would give as much in fewer
# cases than this.
OF_ITS_OWN: Final = 0.05
# Shown where nothing is striking: what comes nearest.
_NEAREST: Final = 5
_MOST_NAMES: Final = 200


class Separation(StrEnum):
    SEPARATED = "separated"
    CANNOT_SEPARATE = "cannot separate"


class Doubt(StrEnum):
    """Why nothing is named."""

    NOBODY = "no node is affected"
    EVERYBODY = "every node is affected"
    CHANCE = "nothing stands out from chance"
    PLACE = "the leader and a place are the same nodes"
    RIVALS = "others fit about as well"


class Relation(StrEnum):
    FIRST = "first"
    SAME_SUBJECT = "same subject"
    PROXY = "proxy"
    INSEPARABLE = "inseparable"
    OF_ITS_OWN = "of its own"
    UNNAMED = "no verdict names it"


class DecidedBy(StrEnum):
    COUNTS = "counts"
    MECHANISM = "mechanism"


@dataclass(frozen=True, slots=True)
class Deciding:
    """Nodes that have one of two differences only, by name: first those that failed."""

    affected: tuple[str, ...]
    well: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Of thousands the first are reported, and their number."""
        names = {
            "affected": list(self.affected[:_MOST_NAMES]),
            "well": list(self.well[:_MOST_NAMES]),
        }
        return {**names, "affected_count": len(self.affected), "well_count": len(self.well)}


@dataclass(frozen=True, slots=True)
class Leader:
    """A striking difference and how it stands to the first of them.

    `chance_given_first`: that it would look so among nodes alike in the first; `first_given_it`:
    the other way round. `where_it_is` and `elsewhere` are the first's 2x2 tables among the nodes
    that have this difference and among the others.
    """

    candidate: PredictiveDifference
    share: float
    relation: Relation
    chance_given_first: float
    first_given_it: float
    where_it_is: FourfoldTable
    elsewhere: FourfoldTable
    first_only: Deciding
    this_only: Deciding

    @property
    def name(self) -> str:
        """What does not lead is called by its place, if it has one: the place is what people look
        at.
        """
        is_place = self.relation is not Relation.FIRST and bool(self.candidate.places)
        return str(self.candidate.places[0]) if is_place else self.candidate.name

    def as_json(self) -> dict[str, Any]:
        return {
            **self.candidate.as_json(),
            "name": self.name,
            "relation": self.relation,
            "evidence_share": self.share,
            "chance_given_first": self.chance_given_first,
            "first_given_it": self.first_given_it,
            "first_where_it_is": self.where_it_is.as_json(),
            "first_elsewhere": self.elsewhere.as_json(),
            "first_only": self.first_only.as_json(),
            "this_only": self.this_only.as_json(),
        }


@dataclass(frozen=True, slots=True)
class Decision:
    """`leaders` begin with the first; `asked` differences were tested; `left_out` facts were not,
    by reason. `mechanism` is what the nodes' verdicts say of the first, if they name it.
    """

    doubt: Doubt | None
    leaders: tuple[Leader, ...]
    nodes: int
    affected: int
    asked: int
    left_out: dict[str, int]
    decided_by: DecidedBy | None = None
    mechanism: Mechanism | None = None

    @property
    def outcome(self) -> Separation:
        return Separation.SEPARATED if self.doubt is None else Separation.CANNOT_SEPARATE

    @property
    def first(self) -> Leader | None:
        return self.leaders[0] if self.leaders else None


def decide(matrix: FactMatrix, affected: Flags, origins: Origins | None = None) -> Decision:
    failed, nodes = int(affected.sum()), len(matrix.nodes)
    if failed in (0, nodes):
        return Decision(Doubt.EVERYBODY if failed else Doubt.NOBODY, (), nodes, failed, 0, {})
    ranking = rank(matrix, affected)
    # A place leads nothing; one that shares its nodes with facts stands for those.
    first = next((each for each in ranking.leaders if each.facts), None)
    if first is None:
        return Decision(Doubt.CHANCE, (), nodes, failed, ranking.asked, ranking.left_out)
    # Those that just miss being striking compete too: else one of two alike could win by a hair.
    leaders = _leaders(first, ranking.leaders, matrix.nodes, affected)
    doubt = _doubt(first, leaders)
    shown = (
        leaders[:_NEAREST]
        if doubt is Doubt.CHANCE
        else [each for each in leaders if _is_shown(each)]
    )
    decision = Decision(doubt, tuple(shown), nodes, failed, ranking.asked, ranking.left_out)
    return _with_verdicts(decision, matrix.nodes, affected, origins)


def _with_verdicts(
    decision: Decision, names: list[str], affected: Flags, origins: Origins | None
) -> Decision:
    """Counts that decide are left alone. Where they cannot, what the verdicts name comes first."""
    leaders = decision.leaders
    if decision.doubt is None:
        first = leaders[0].candidate
        mechanism = None if origins is None else named_by_verdicts(first, affected, origins)
        return replace(decision, decided_by=DecidedBy.COUNTS, mechanism=mechanism)
    if decision.doubt not in (Doubt.PLACE, Doubt.RIVALS) or origins is None:
        return decision
    rivals = [
        each.candidate
        for each in leaders
        if each.relation in (Relation.FIRST, Relation.INSEPARABLE, Relation.SAME_SUBJECT)
    ]
    found = by_mechanism(rivals, affected, origins)
    if found is None:
        return decision
    chosen, same_nodes, mechanism = found
    others = [each.candidate for each in leaders if each.candidate.has is not chosen.has]
    ordered = [chosen, *([same_nodes] if same_nodes else []), *others]
    judged = [
        replace(each, relation=Relation.UNNAMED) if each.relation is Relation.INSEPARABLE else each
        for each in _leaders(chosen, ordered, names, affected)
    ]
    return replace(
        decision,
        doubt=None,
        leaders=tuple(judged),
        decided_by=DecidedBy.MECHANISM,
        mechanism=mechanism,
    )


def _doubt(first: PredictiveDifference, leaders: Sequence[Leader]) -> Doubt | None:
    if first.false_share > FALSE_DISCOVERY:
        return Doubt.CHANCE
    if first.places:
        return Doubt.PLACE
    return Doubt.RIVALS if any(each.relation is Relation.INSEPARABLE for each in leaders) else None


def _is_shown(leader: Leader) -> bool:
    return (
        leader.candidate.false_share <= FALSE_DISCOVERY or leader.relation is Relation.INSEPARABLE
    )


def _leaders(
    first: PredictiveDifference,
    rivals: Sequence[PredictiveDifference],
    names: list[str],
    affected: Flags,
) -> list[Leader]:
    """The first, then the others in their order."""
    ordered = [first, *(each for each in rivals if each is not first)]
    share = shares(ordered)
    open_still = cannot_be_excluded(share)
    found = []
    for place, (candidate, part) in enumerate(zip(ordered, share.tolist(), strict=True)):
        of_first = chance_given(first.has, affected, candidate.has)
        of_it = chance_given(candidate.has, affected, first.has)
        relation = _relation(first, candidate, place in open_still, of_first, of_it)
        found.append(_leader(first, candidate, part, relation, of_first, of_it, names, affected))
    return found


def _relation(
    first: PredictiveDifference,
    other: PredictiveDifference,
    is_open: bool,
    of_first: float,
    of_it: float,
) -> Relation:
    if other is first:
        return Relation.FIRST
    if _subjects(other) <= _subjects(first):
        return Relation.SAME_SUBJECT
    is_striking = other.false_share <= FALSE_DISCOVERY
    if is_open or (is_striking and of_first > OF_ITS_OWN):
        return Relation.INSEPARABLE
    return Relation.PROXY if of_it > OF_ITS_OWN else Relation.OF_ITS_OWN


def _subjects(candidate: PredictiveDifference) -> set[tuple[str, str]]:
    """What a difference is about: all that is known of one unit is about that unit."""
    return {
        ("unit" if each.kind.startswith("unit_") else each.kind, each.name)
        for each in candidate.predicates
    }


def _leader(
    first: PredictiveDifference,
    other: PredictiveDifference,
    share: float,
    relation: Relation,
    of_first: float,
    of_it: float,
    names: list[str],
    affected: Flags,
) -> Leader:
    return Leader(
        other,
        share,
        relation,
        of_it,
        of_first,
        table_of(first.has, affected, other.has),
        table_of(first.has, affected, ~other.has),
        _deciding(first.has & ~other.has, affected, names),
        _deciding(other.has & ~first.has, affected, names),
    )


def _deciding(chosen: Flags, affected: Flags, names: list[str]) -> Deciding:
    failed, well = (np.flatnonzero(chosen & flags).tolist() for flags in (affected, ~affected))
    return Deciding(tuple(names[node] for node in failed), tuple(names[node] for node in well))


def shares(candidates: Sequence[PredictiveDifference]) -> NDArray[np.float64]:
    """What each carries of all of the evidence, together 1: which of them would make the failures
    least surprising.

    Each difference gets the chance of the failures as they are if nodes that have it fail at one
    rate and the others at another, both unknown (two beta-binomials). Every name counts once, a
    threshold as one of those that were tried. A place counts for more: it also carries what was not
    recorded.
    """
    if not candidates:
        return np.zeros(0)
    names = np.array(
        [len(each.predicates) / each.tried + _UNRECORDED * bool(each.places) for each in candidates]
    )
    weights = np.array([_log_likelihood(each.table) for each in candidates])
    found = np.exp(weights - weights.max()) * names
    return np.asarray(found / found.sum())


def cannot_be_excluded(share: NDArray[np.float64]) -> set[int]:
    """The fewest that together carry enough of the evidence."""
    order = np.argsort(-share, kind="stable")
    needed = int(np.searchsorted(np.cumsum(share[order]), SURE)) + 1
    return set(order[:needed].tolist())


def _log_likelihood(table: FourfoldTable) -> float:
    logs = log_factorials(table.nodes + 1)
    return sum(
        float(logs[failed] + logs[well] - logs[failed + well + 1])
        for failed, well in (
            (table.affected_with, table.well_with),
            (table.affected_without, table.well_without),
        )
    )
