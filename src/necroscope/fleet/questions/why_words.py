"""A decision in words that a tired engineer understands: counts, who decides, why a place is only a
proxy, how sure.
"""

from necroscope.fleet.cohorts.columns import Flags
from necroscope.fleet.cohorts.decision import (
    FALSE_DISCOVERY,
    SURE,
    DecidedBy,
    Decision,
    Doubt,
    Leader,
    Relation,
)
from necroscope.fleet.cohorts.mechanism import Origins, most_named
from necroscope.fleet.cohorts.stratified import FourfoldTable


def summary(decision: Decision, about: str) -> str:
    first = decision.first
    if decision.doubt is Doubt.NOBODY:
        return f"no node had {about}: there is nothing to explain"
    if decision.doubt is Doubt.EVERYBODY:
        return (
            f"all {decision.nodes} nodes had {about}: there is no node to compare them with; ask"
            " for less time, or for more nodes"
        )
    if first is None or decision.doubt is Doubt.CHANCE:
        nearest = (
            ""
            if first is None
            else f"; nearest comes: {first.candidate.name} ({rates(first.candidate.table)})"
        )
        return f"cannot separate: no difference between the nodes stands out from chance{nearest}"
    leads = f"{first.candidate.name} goes with {about}: {rates(first.candidate.table)}"
    if decision.doubt is None:
        return leads + _by_mechanism(decision)
    if decision.doubt is Doubt.PLACE:
        place = " and ".join(map(str, first.candidate.places))
        same = len(first.candidate.facts)
        facts = f"{first.candidate.name}" + (f" and {same - 1} other facts" if same > 1 else "")
        text = f"{facts} on the very nodes where {place}, and any of it can be the cause"
        return f"cannot separate: {text}; {rates(first.candidate.table)}"
    rivals = [each for each in decision.leaders if each.relation is Relation.INSEPARABLE]
    text = "; ".join(each.name for each in rivals[:2]) + (
        f"; and {len(rivals) - 2} more" if len(rivals) > 2 else ""
    )
    return f"cannot separate: {leads}; but not excluded: {text}"


def _by_mechanism(decision: Decision) -> str:
    if decision.decided_by is not DecidedBy.MECHANISM or decision.mechanism is None:
        return ""
    rivals = [each for each in decision.leaders if each.relation is Relation.UNNAMED]
    places = [str(place) for each in rivals for place in each.candidate.places[:1]]
    facts = sum(len(each.candidate.facts) for each in rivals)
    fits = [*places[:1], *([f"{facts} other {'fact' if facts == 1 else 'facts'}"] if facts else [])]
    also = f": {' and '.join(fits)} fit the counts as well, but" if fits else ":"
    return f". Decided by mechanism, not by counts{also} {decision.mechanism.words}"


def verdict_notes(decision: Decision, affected: Flags, origins: Origins) -> list[str]:
    """What the verdicts name where that is not what is reported."""
    named = most_named(affected, origins)
    if named is None or decision.mechanism is not None or decision.first is None:
        return []
    link, count, judged = named
    head = f"the verdicts of {count} of {judged} affected nodes that have one name {' '.join(link)}"
    what = (
        "no difference between the nodes is about it"
        if decision.doubt is not None
        else "the counts speak for another difference"
    )
    return [f"{head}: {what}"]


def rates(table: FourfoldTable) -> str:
    """`17 of 73 nodes with it were affected (23 %), 2 of 127 without (1.6 %)`."""
    without = table.nodes - table.with_it
    return (
        f"{table.affected_with} of {table.with_it} nodes with it were"
        f" affected{_percent(table.affected_with, table.with_it)}, {table.affected_without} of"
        f" {without} without{_percent(table.affected_without, without)}"
    )


def standing(leader: Leader, first: Leader) -> str:
    """What a leader is compared with the first."""
    name, other = leader.name, first.name
    where, elsewhere = leader.where_it_is, leader.elsewhere
    if leader.relation is Relation.FIRST:
        return _how_sure(leader)
    if leader.relation is Relation.SAME_SUBJECT:
        return f"{name}: says the same of the same thing ({rates(leader.candidate.table)})"
    cells = f"where {name}, {_cells(where)}; elsewhere {_cells(elsewhere)}"
    if leader.relation is Relation.PROXY:
        return (
            f"{name} only seems to matter: {where.with_it} of its {where.nodes} nodes have the"
            f" first difference; {cells}"
        )
    if leader.relation in (Relation.INSEPARABLE, Relation.UNNAMED):
        differ = len(
            leader.first_only.affected
            + leader.first_only.well
            + leader.this_only.affected
            + leader.this_only.well
        )
        if leader.relation is Relation.UNNAMED:
            apart = f"on {differ} nodes only" if differ else "on no node"
            return f"{name} differs from {other} {apart}, but no verdict names it"
        return (
            f"{name} cannot be separated from {other}: they differ on {differ} nodes only; {cells}"
        )
    return f"{name} says something of its own: {cells}"


def _cells(first: FourfoldTable) -> str:
    """Of the first difference, among some nodes."""
    without = first.nodes - first.with_it
    with_it = f"{first.affected_with} of {first.with_it} nodes with the first were affected"
    return f"{with_it} and {first.affected_without} of {without} without"


def _how_sure(first: Leader) -> str:
    candidate = first.candidate
    chance = "less than 1e-300" if candidate.chance == 0 else f"{candidate.chance:.1e}"
    rate = (
        f"false discovery rate {candidate.false_share:.1e} (striking from {FALSE_DISCOVERY:g} down)"
    )
    share = (
        f"of the evidence of all that competes it carries {first.share:.0%} (counts alone name it"
        f" from {SURE:.0%} up)"
    )
    return f"chance alone would give such counts with probability {chance}; {rate}; {share}"


def _percent(part: int, whole: int) -> str:
    share = 100 * part / whole if whole else 0.0
    return f" ({share:.0f} %)" if share >= 10 or not share else f" ({share:.1f} %)"
