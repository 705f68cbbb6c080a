"""`fleet next`: which nodes will be hit next. Those that carry what was named, how much of it they
have and when they reach the threshold; and those that would carry it, had nothing failed before.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from necroscope.fleet.ask import LakeQuestions
from necroscope.fleet.cohorts.columns import Fact, FactMatrix
from necroscope.fleet.cohorts.dose import Dose
from necroscope.fleet.cohorts.fact_rules import Predicate
from necroscope.fleet.cohorts.ordered import order_key
from necroscope.fleet.fact_matrix import node_names, read_fact_matrix
from necroscope.fleet.gauge_series import DAY_S, UPTIME, GaugeSeries
from necroscope.fleet.lake_tables import NodeKey
from necroscope.fleet.questions.dose_words import amount_words, size_words, threshold_words
from necroscope.fleet.questions.doses import read_series
from necroscope.fleet.questions.occurrences import Subject, read_moments
from necroscope.fleet.questions.presence import read_presence
from necroscope.fleet.questions.why import WhyAnswer, why
from necroscope.model.span import Span

SCHEMA: Final = 1
# How fast a number grows is taken from this much time before the end.
_GROWTH_S: Final = 3 * DAY_S
_MOST: Final = 1_000
_ENABLED: Final = ("enabled", "enabled-runtime", "linked", "generated", "alias")
_NOT_STARTED: Final = ("never-started", "condition-failed")
_TROUBLE: Final = ("failed", "condition-failed", "never-started", "crash-loop")
_NEEDED: Final = ("Requires", "BindsTo", "Requisite", "After")
_UNIT_FACTS: Final = ("unit_file", "unit_outcome", "unit_dependency")


@dataclass(frozen=True, slots=True)
class Carrier:
    """`days` until it reaches the threshold: 0 if it has, None if it is unknown; `days_low` and
    `days_high` with the threshold's interval.
    """

    node: str
    size: float | None
    a_day: float | None
    days: float | None
    days_low: float | None
    days_high: float | None
    is_hit: bool

    def as_json(self) -> dict[str, Any]:
        return {
            "node": self.node,
            "size": self.size,
            "per_day": self.a_day,
            "days": self.days,
            "days_low": self.days_low,
            "days_high": self.days_high,
            "is_hit": self.is_hit,
        }


@dataclass(frozen=True, slots=True)
class WaitingNode:
    """The unit is enabled here and was never started; `held_back_by` are units that it needs, with
    what came of them.
    """

    node: str
    outcome: str
    held_back_by: tuple[tuple[str, str], ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "node": self.node,
            "outcome": self.outcome,
            "held_back_by": [
                {"unit": unit, "outcome": outcome} for unit, outcome in self.held_back_by
            ],
        }


@dataclass(frozen=True, slots=True)
class NextAnswer:
    """`carrier` is what was named; None where nothing could be."""

    why: WhyAnswer
    carrier: str | None
    unit: str | None
    dose: Dose | None
    carriers: tuple[Carrier, ...]
    waiting: tuple[WaitingNode, ...]

    def as_json(self) -> dict[str, Any]:
        answer = self.why.as_json()
        return {
            "schema": SCHEMA,
            "about": answer["about"],
            "from": answer["from"],
            "to": answer["to"],
            "outcome": answer["outcome"],
            "summary": self._summary(),
            "carrier": self.carrier,
            "unit": self.unit,
            "dose": None if self.dose is None else self.dose.as_json(),
            "carriers": [each.as_json() for each in self.carriers[:_MOST]],
            "carrier_count": len(self.carriers),
            "waiting": [each.as_json() for each in self.waiting[:_MOST]],
            "waiting_count": len(self.waiting),
        }

    def _summary(self) -> str:
        if self.carrier is None:
            return f"who is next cannot be said: {self.why.as_json()['summary']}"
        text = [f"{self._carriers()}", *self._waiting()]
        return ". ".join(text)

    def _carriers(self) -> str:
        open_still = [each for each in self.carriers if not each.is_hit]
        hit = len(self.carriers) - len(open_still)
        head = f"{_nodes(len(self.carriers))} carry it ({self.carrier})"
        head += f"; {hit} of them were hit since they were last booted" if hit else ""
        if self.dose is None:
            return f"{head}; {len(open_still)} may be next: no number tells when"
        over = sum(each.days == 0 for each in open_still)
        soon = [each for each in open_still if each.days]
        text = f"{head}; {over} more are {threshold_words(self.dose)} and can be hit at any time"
        if soon and soon[0].size is not None:
            first = soon[0]
            text += (
                f"; {len(soon)} will get there, {first.node} first: it has"
                f" {amount_words(self.dose.name, soon[0].size)} and reaches the threshold in"
                f" {_days(first.days)}"
            )
        return text

    def _waiting(self) -> list[str]:
        if not self.waiting:
            return []
        blockers = Counter(pair for each in self.waiting for pair in each.held_back_by)
        text = f"On {_nodes(len(self.waiting))} {self.unit} is enabled and was never started"
        if blockers:
            (unit, outcome), count = blockers.most_common(1)[0]
            text += (
                f": on {count} of them {unit}, which it needs, is {outcome}. A repair of {unit}"
                f" starts {self.unit} there: disable it first"
            )
        return [text]


def _nodes(count: int) -> str:
    return f"{count} node{'' if count == 1 else 's'}"


def _days(days: float | None) -> str:
    return "an unknown time" if days is None else size_words(UPTIME, days * DAY_S)


def next_nodes(
    questions: LakeQuestions, subject: Subject, span: Span, where: str | None = None
) -> NextAnswer:
    answer = why(questions, subject, span, where)
    first = answer.decision.first
    if answer.decision.doubt is not None or first is None:
        return NextAnswer(answer, None, None, None, (), ())
    predicate = first.candidate.facts[0]
    unit = predicate.name if predicate.kind.startswith("unit_") else None
    keys = sorted(read_presence(questions, span).nodes())
    matrix = _facts_now(questions, keys, span, predicate, unit)
    carrying = [
        key
        for key, value in zip(keys, _values(matrix, predicate), strict=True)
        if _is_so(predicate, value)
    ]
    dose = answer.doses[0] if answer.doses and answer.doses[0].is_above else None
    series = read_series(questions, carrying, span) if questions.lake.days("gauges") else None
    moments = read_moments(questions, subject, span)
    carriers = _carriers(carrying, series, dose, moments, span)
    return NextAnswer(answer, str(predicate), unit, dose, carriers, _waiting(matrix, keys, unit))


def _facts_now(
    questions: LakeQuestions,
    keys: list[NodeKey],
    span: Span,
    predicate: Predicate,
    unit: str | None,
) -> FactMatrix:
    named = (predicate.kind, predicate.name)

    def is_wanted(fact: Fact) -> bool:
        return fact == named or (unit is not None and fact[0] in _UNIT_FACTS)

    moments = dict.fromkeys(keys, span.to_ns - 1)
    return questions.again_if_merged(
        lambda: read_fact_matrix(questions.lake, moments, questions.clusters, is_wanted)
    )


def _values(matrix: FactMatrix, fact: Predicate | Fact) -> list[str | None]:
    name = (fact.kind, fact.name) if isinstance(fact, Predicate) else fact
    if name not in matrix.facts:
        return [None] * len(matrix.nodes)
    return [matrix.values[pair] for pair in matrix.pair[matrix.facts.index(name)].tolist()]


def _is_so(predicate: Predicate, value: str | None) -> bool:
    if predicate.is_ordered:
        key, least = order_key(value or ""), order_key(predicate.value or "")
        return key is not None and least is not None and (key >= least) != predicate.is_negated
    return (value == predicate.value) != predicate.is_negated


def _carriers(
    keys: list[NodeKey],
    series: GaugeSeries | None,
    dose: Dose | None,
    moments: Mapping[NodeKey, list[int]],
    span: Span,
) -> tuple[Carrier, ...]:
    """Who is nearest comes first; those that were hit last."""
    names = node_names(keys)
    found = [
        _carrier(name, place, series, dose, moments.get(key, ()), span)
        for place, (name, key) in enumerate(zip(names, keys, strict=True))
    ]
    return tuple(
        sorted(
            found,
            key=lambda each: (each.is_hit, np.inf if each.days is None else each.days, each.node),
        )
    )


def _carrier(
    name: str,
    place: int,
    series: GaugeSeries | None,
    dose: Dose | None,
    moments: Iterable[int],
    span: Span,
) -> Carrier:
    unknown = Carrier(name, None, None, None, None, None, bool(list(moments)))
    if series is None:
        return unknown
    own = np.flatnonzero((series.node_of_boot == place) & np.isfinite(series.last_s))
    if not len(own):
        return unknown
    boot = own[-1:]
    booted_s = float(np.nan_to_num(series.booted_s[boot[0]], nan=0.0))
    is_hit = any(each >= booted_s for each in series.seconds(list(moments)).tolist())
    if dose is None or dose.name not in series.names:
        return Carrier(name, None, None, None, None, None, is_hit)
    size, a_day = _now(series, dose.name, boot, float(series.seconds([span.to_ns])[0]))
    days, low, high = (_reach(size, a_day, end) for end in (dose.threshold, dose.low, dose.high))
    return Carrier(name, size, a_day, days, low, high, is_hit)


def _now(
    series: GaugeSeries, name: str, boot: NDArray[np.int64], now_s: float
) -> tuple[float | None, float | None]:
    """How large a number is by now, and how much it grows per day: from its last row on as before
    it, for rows are some percent apart.
    """
    to_s = min(now_s, float(series.last_s[boot[0]]))
    from_s = max(to_s - _GROWTH_S, float(series.first_s[boot[0]]))
    before, last = series.at(name, np.repeat(boot, 2), np.array([from_s, to_s])).tolist()
    if np.isnan(last):
        return None, None
    if np.isnan(before) or to_s <= from_s:
        return last, None
    a_day = (last - before) / (to_s - from_s) * DAY_S
    return last + max(a_day, 0.0) * (now_s - to_s) / DAY_S, a_day


def _reach(size: float | None, a_day: float | None, threshold: float) -> float | None:
    """Days, if it grows on as it did; None if it does not."""
    if size is None:
        return None
    if size >= threshold:
        return 0.0
    return (threshold - size) / a_day if a_day and a_day > 0 else None


def _waiting(matrix: FactMatrix, keys: list[NodeKey], unit: str | None) -> tuple[WaitingNode, ...]:
    if unit is None:
        return ()
    state, outcome, needs = (_values(matrix, (kind, unit)) for kind in _UNIT_FACTS)
    outcomes = {
        name: _values(matrix, (kind, name)) for kind, name in matrix.facts if kind == "unit_outcome"
    }
    found = []
    for place, name in enumerate(node_names(keys)):
        came = outcome[place]
        if state[place] in _ENABLED and came in _NOT_STARTED:
            held = tuple(
                (other, result)
                for other in needed_units(needs[place] or "")
                if (result := outcomes.get(other, [None] * len(keys))[place]) in _TROUBLE
            )
            found.append(WaitingNode(name, str(came), held))
    return tuple(found)


def needed_units(dependency: str) -> list[str]:
    """What must be there before, of a fact `unit_dependency`: `Requires=a b; After=c`."""
    found: dict[str, None] = {}
    for part in dependency.split("; "):
        kind, _, names = part.partition("=")
        if kind in _NEEDED:
            found |= dict.fromkeys(names.split())
    return list(found)
