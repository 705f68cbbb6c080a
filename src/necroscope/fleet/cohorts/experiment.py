"""The experiment that would tell apart what the nodes at hand cannot: what to change, on how many
nodes, and what to look for.
"""

import math
from typing import Final

from necroscope.fleet.cohorts.candidates import PredictiveDifference
from necroscope.fleet.cohorts.decision import Decision, Doubt, Relation
from necroscope.fleet.cohorts.fact_rules import Predicate
from necroscope.fleet.cohorts.stratified import FourfoldTable

# How rarely the result may come about if the change did nothing.
_BY_CHANCE: Final = 0.05
_MOST_NODES: Final = 500
_MOST_LISTED: Final = 6


def experiments(decision: Decision, span: str) -> list[str]:
    """In words, the cheapest first; `span` is the time that was looked at, for example `30 d`."""
    first = decision.first
    if decision.doubt is Doubt.CHANCE:
        return [_compare(decision) if first is None else _wait(decision)]
    if decision.doubt is None or first is None:
        return []
    rivals = [each.candidate for each in decision.leaders if each.relation is Relation.INSEPARABLE]
    facts = [fact for each in (first.candidate, *rivals) for fact in each.facts]
    needed = nodes_needed(first.candidate.table)
    steps = [_take_away(fact, first.candidate, needed, span) for fact in facts[:_MOST_LISTED]]
    if len(facts) > _MOST_LISTED:
        steps.append(
            f"the other {len(facts) - _MOST_LISTED} likewise, or half of what is left at a time on"
            " the same nodes"
        )
    return [*steps, *_give(first.candidate, needed, span)]


def nodes_needed(table: FourfoldTable) -> int | None:
    """Nodes that have it, of which none being affected would surprise. None: more than a fleet
    would change.
    """
    rate = table.affected_with / max(table.with_it, 1)
    if rate >= 1:
        return 1
    needed = math.ceil(math.log(_BY_CHANCE) / math.log(1 - rate)) if rate > 0 else _MOST_NODES + 1
    return needed if needed <= _MOST_NODES else None


def _take_away(fact: Predicate, first: PredictiveDifference, needed: int | None, span: str) -> str:
    where = f" ({_names(first.places)})" if first.places else ""
    if needed is None:
        return (
            f"undo on as many nodes as you can that {fact}: too few of those nodes fail to say how"
            " many it takes"
        )
    chance = f"without the change that would happen in 1 of {round(1 / _BY_CHANCE)} cases"
    change = f"on {needed} nodes where {fact}{where}, undo that and change nothing else"
    return f"{change}: if none of them is affected in {span}, it is that ({chance})"


def _give(first: PredictiveDifference, needed: int | None, span: str) -> list[str]:
    """The other way round is only worth telling where a place is in the way."""
    if not first.places or not first.facts or needed is None:
        return []
    change = f"make it so that {first.facts[0]} on {needed} nodes of another place"
    return [
        (
            f"or the other way round: {change}; if some of them are affected in {span}, it is that,"
            " and not the place"
        )
    ]


def _wait(decision: Decision) -> str:
    seen = (
        f"{decision.affected} affected of {decision.nodes} nodes and {decision.asked:,} differences"
        " to choose from"
    )
    needed = affected_needed(decision.nodes, decision.asked)
    return (
        f"wait for more, or ask for a longer time: with {seen}, it takes at least {needed} affected"
        " nodes that all share one"
    )


def _compare(decision: Decision) -> str:
    """Few nodes give no statistics, but what differs between them can be read."""
    few = f"{decision.affected} affected of {decision.nodes} nodes are too few to weigh any"
    return (
        f"read in which facts the affected and the others differ (fleet diff): {few}; push from"
        " more nodes"
    )


def affected_needed(nodes: int, questions: int) -> int:
    """The fewest affected nodes that could make a difference striking, if they and only they have
    it.
    """
    chance, affected = 1.0, 0
    while chance * max(questions, 1) > _BY_CHANCE and affected < nodes:
        chance *= (affected + 1) / (nodes - affected)
        affected += 1
    return affected


def _names(places: tuple[Predicate, ...]) -> str:
    return " and ".join(map(str, places[:2]))
