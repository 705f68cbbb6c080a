"""The differences between nodes that could go with their failures, each once, those first that
chance would hardly make.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from necroscope.fleet.cohorts import fact_rules
from necroscope.fleet.cohorts.columns import Counts, FactMatrix, Flags, PairCounts, count_pairs
from necroscope.fleet.cohorts.fact_rules import Predicate
from necroscope.fleet.cohorts.fisher import false_discovery, fisher_greater
from necroscope.fleet.cohorts.ordered import Cuts, at_least, find_cuts
from necroscope.fleet.cohorts.stratified import FourfoldTable

# A difference that could not reach this even if all that have it failed is not asked at all: it
# only dilutes the others.
_BEST_CHANCE: Final = 0.05
_LEADERS: Final = 40
# Of those that are the same difference, the one an operator can act on is reported first.
_FIRST_KINDS: Final = (
    "unit_outcome", "unit_file", "container", "executable", "sysctl", "kernel", "module",
    "config_file", "package", "nic", "thp",
)  # fmt: skip
_TROUBLE: Final = frozenset({"crash-loop", "failed"})


@dataclass(frozen=True, slots=True)
class PredictiveDifference:
    """One difference: `predicates` are its names, true on the same nodes; `has` says on which. It
    was chosen from `tried` that say the same with another threshold.
    """

    predicates: tuple[Predicate, ...]
    has: Flags
    table: FourfoldTable
    chance: float
    false_share: float
    tried: int = 1

    @property
    def places(self) -> tuple[Predicate, ...]:
        return tuple(each for each in self.predicates if each.is_place)

    @property
    def facts(self) -> tuple[Predicate, ...]:
        return tuple(each for each in self.predicates if not each.is_place)

    @property
    def name(self) -> str:
        return str((self.facts or self.predicates)[0])

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "facts": [each.as_json() for each in self.facts],
            "places": [each.as_json() for each in self.places],
            "table": self.table.as_json(),
            "chance": self.chance,
            "false_discovery": self.false_share,
        }


@dataclass(frozen=True, slots=True)
class Ranking:
    """`asked` differences were tested; `left_out` says how many facts were not, and why."""

    leaders: list[PredictiveDifference]
    asked: int
    left_out: dict[str, int]


@dataclass(frozen=True, slots=True)
class _Questions:
    """Pairs, cuts and their opposites side by side: what is asked of each is the same. `tried` is
    how many a cut was chosen from.
    """

    pair: Counts
    is_negated: Flags
    is_ordered: Flags
    tried: Counts
    with_it: Counts
    affected_with: Counts
    prints: NDArray[np.float64]


def rank(matrix: FactMatrix, affected: Flags, leaders: int = _LEADERS) -> Ranking:
    counts = count_pairs(matrix, affected)
    kept, has_order, left_out = _kept_facts(matrix, counts)
    cuts = find_cuts(matrix, counts, has_order, int(affected.sum()))
    asked = _question(matrix, counts, kept, cuts, int(affected.sum()))
    group, first = _groups(asked)
    nodes, failed = len(matrix.nodes), int(affected.sum())
    chance = np.minimum(
        1.0,
        fisher_greater(asked.affected_with[first], asked.with_it[first], failed, nodes)
        * asked.tried[first],
    )
    false_share = false_discovery(chance)
    members: dict[int, list[int]] = defaultdict(list)
    # Its opposite says the same of the other nodes: what goes with being well is asked, but leads
    # nothing.
    goes_with = asked.affected_with[first] * nodes > asked.with_it[first] * failed
    best = np.lexsort((-asked.affected_with[first], chance))
    best = best[goes_with[best]][:leaders]
    for row in np.flatnonzero(np.isin(group, best)).tolist():
        members[int(group[row])].append(row)
    found = [
        _candidate(
            matrix,
            asked,
            members[number],
            affected,
            float(chance[number]),
            float(false_share[number]),
        )
        for number in best.tolist()
    ]
    return Ranking(found, len(first), left_out)


def _kept_facts(matrix: FactMatrix, counts: PairCounts) -> tuple[Flags, Flags, dict[str, int]]:
    """Which facts are asked about value by value, of which a cut is looked for, and why the others
    are left out. What has a value of its own on most nodes may still have an order.
    """
    nodes = len(matrix.nodes)
    facts = len(matrix.facts)
    is_absent = np.array([value is None for value in matrix.values], bool)
    seen = counts.with_it > 0
    values = np.bincount(matrix.fact_of_pair[seen & ~is_absent], minlength=facts)
    having = np.bincount(
        matrix.fact_of_pair, weights=np.where(is_absent, 0, counts.with_it), minlength=facts
    )
    is_same = np.bincount(matrix.fact_of_pair[counts.with_it == nodes], minlength=facts) > 0
    reasons: Counter[str] = Counter()
    kept, may_have_order = np.ones(facts, bool), np.ones(facts, bool)
    for number, (kind, name) in enumerate(matrix.facts):
        reason = fact_rules.SAME if is_same[number] else fact_rules.reason_to_leave_out(kind, name)
        if (
            reason is None
            and not fact_rules.is_place(kind, name)
            and fact_rules.has_own_values(values[number], having[number])
        ):
            reason = fact_rules.OWN
        if reason is not None:
            kept[number] = False
            may_have_order[number] = reason == fact_rules.OWN
            reasons[reason] += 1
    return kept, may_have_order, dict(reasons)


def _question(
    matrix: FactMatrix, counts: PairCounts, kept: Flags, cuts: Cuts, failed: int
) -> _Questions:
    nodes = len(matrix.nodes)
    single = np.flatnonzero(kept[matrix.fact_of_pair] & (counts.with_it > 0))
    pair = np.concatenate([single, cuts.pair])
    with_it = np.concatenate([counts.with_it[single], cuts.with_it])
    affected_with = np.concatenate([counts.affected_with[single], cuts.affected_with])
    prints = np.concatenate([counts.prints[single], cuts.prints])
    both = _Questions(
        np.tile(pair, 2),
        np.repeat([False, True], len(pair)),
        np.tile(np.arange(len(pair)) >= len(single), 2),
        np.tile(np.concatenate([np.ones(len(single), np.int64), cuts.tried]), 2),
        np.concatenate([with_it, nodes - with_it]),
        np.concatenate([affected_with, failed - affected_with]),
        np.concatenate([prints, counts.whole - prints]),
    )
    best = fisher_greater(np.minimum(both.with_it, failed), both.with_it, failed, nodes)
    chosen = np.flatnonzero(best <= _BEST_CHANCE)
    return _Questions(
        both.pair[chosen],
        both.is_negated[chosen],
        both.is_ordered[chosen],
        both.tried[chosen],
        both.with_it[chosen],
        both.affected_with[chosen],
        both.prints[chosen],
    )


def _groups(asked: _Questions) -> tuple[Counts, Counts]:
    """The group of each row, and one row of each group: rows that the same nodes have."""
    # A value comes before a cut that the same nodes have: it was not chosen from several.
    order = np.lexsort(
        (asked.is_negated, asked.tried, asked.affected_with, asked.with_it, asked.prints)
    )
    keys = np.stack(
        [asked.prints, asked.with_it.astype(np.float64), asked.affected_with.astype(np.float64)]
    )[:, order]
    is_new = np.append(True, (keys[:, 1:] != keys[:, :-1]).any(axis=0))[: len(order)]
    group = np.zeros(len(order), np.int64)
    group[order] = np.cumsum(is_new) - 1
    return group, order[is_new]


def _candidate(
    matrix: FactMatrix,
    asked: _Questions,
    rows: list[int],
    affected: Flags,
    chance: float,
    false_share: float,
) -> PredictiveDifference:
    row = rows[0]
    pair = int(asked.pair[row])
    has = at_least(matrix, pair) if asked.is_ordered[row] else matrix.has(pair)
    failed_with, with_it = int(asked.affected_with[row]), int(asked.with_it[row])
    failed, nodes = int(affected.sum()), len(affected)
    table = FourfoldTable(
        failed_with,
        with_it - failed_with,
        failed - failed_with,
        nodes - with_it - failed + failed_with,
    )
    names = {
        _predicate(
            matrix,
            int(asked.pair[each]),
            bool(asked.is_negated[each]),
            bool(asked.is_ordered[each]),
        )
        for each in rows
    }
    return PredictiveDifference(
        tuple(sorted(_without_opposites(names), key=_display_order)),
        ~has if asked.is_negated[row] else has,
        table,
        chance,
        false_share,
        int(asked.tried[rows].min()),
    )


def _predicate(matrix: FactMatrix, pair: int, is_negated: bool, is_ordered: bool) -> Predicate:
    kind, name = matrix.facts[matrix.fact_of_pair[pair]]
    return Predicate(kind, name, matrix.values[pair], is_negated, is_ordered)


def _without_opposites(names: set[Predicate]) -> list[Predicate]:
    """A fact of two values says the same in two ways: what the nodes have is reported, not what the
    others have.
    """
    plain = {(each.kind, each.name) for each in names if not each.is_negated}
    return [each for each in names if not each.is_negated or (each.kind, each.name) not in plain]


def _display_order(predicate: Predicate) -> tuple[int, bool, bool, str, str]:
    place = (
        _FIRST_KINDS.index(predicate.kind) if predicate.kind in _FIRST_KINDS else len(_FIRST_KINDS)
    )
    is_well = predicate.value not in _TROUBLE or predicate.is_negated
    return (
        place,
        is_well,
        predicate.is_negated or predicate.value is None,
        predicate.kind,
        predicate.name,
    )
