"""A walk in numbers: the cost of one object, how many there are, when a turn will take a second."""

from collections.abc import Sequence
from typing import Final

from necroscope.analysis.case import Case
from necroscope.analysis.functions import Functions
from necroscope.analysis.populations import Population, all_populations
from necroscope.analysis.report import Evidence, WalkedState
from necroscope.analysis.walk_history import SectionTurns, turns_of
from necroscope.model.span import Span
from necroscope.model.units import NS_PER_S, format_duration, format_moment

# A date farther off is not worth naming.
_FAR_S: Final = 3650 * 86_400
_LATEST: Final = 5


def latest_turn_s(turns: SectionTurns) -> float | None:
    """What the latest turns took."""
    latest = sorted(turns.seconds[-_LATEST:])
    return float(latest[len(latest) // 2]) if latest else None


def walked_state(
    case: Case,
    function: str,
    turns: SectionTurns,
    population: Population | None,
    exponent: float = 1.0,
    competes: str | None = None,
) -> WalkedState:
    """A turn longer than a second has no date in the future."""
    if population is None:
        return WalkedState(function)
    turn_s, count = latest_turn_s(turns), float(population.at(case.window[1]))
    per_object_ns = turn_s / count * NS_PER_S if turn_s and count >= 1 else None
    at_ns: int | None = None
    per_s = population.per_s(Span(max(case.node.span[0], case.window[0]), case.window[1]))
    if turn_s is not None and turn_s < 1.0 and per_s > 0 and count >= 1:
        more = count * ((1.0 / turn_s) ** (1.0 / exponent) - 1.0)
        at_ns = case.window[1] + round(min(more / per_s, _FAR_S) * NS_PER_S)
    return WalkedState(function, population.kind, round(count), per_object_ns, competes, at_ns)


def describe_walk(
    case: Case, group: Functions, kinds: Sequence[str]
) -> tuple[WalkedState | None, list[Evidence]]:
    """Of a mechanism whose functions and population are known: its numbers, and the same in words.
    `kinds` are names of the population, the best first.
    """
    known = all_populations(case.node, case.node.span)
    population = next((known[kind] for kind in kinds if kind in known), None)
    inside = case.samples.now.of(group)
    function = next((name for name in inside.path() if name in group), None)
    if population is None or function is None:
        return None, []
    culprit = case.culprit(group)
    turns = turns_of(case, group, culprit.comm if culprit else None)
    state = walked_state(case, function, turns, population)
    if state.per_object_ns is None:
        return state, []
    text = (
        f"a turn of {function} takes about {format_duration(round(state.per_object_ns))} for each"
        f" of {state.count:,} {population.words}"
    )
    if state.one_second_at_ns is not None:
        text += f"; at this growth it will take 1 s by {format_moment(state.one_second_at_ns)}"
    return state, [case.evidence(text, "samples", case.core)]
