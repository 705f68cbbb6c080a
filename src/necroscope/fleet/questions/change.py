"""`fleet change`: did it help? How often something happened, how often jobs succeeded and how large
numbers were, before and after a fact changed.

Each node is its own comparison: before its change and after. Nodes that did not change, over the
same time, tell what would have been without. Events come in bursts; counted by bursts, the interval
is as wide as it must be.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median_low
from typing import Any, Final

from necroscope.fleet.ask import LakeQuestions
from necroscope.fleet.cohorts.intervals import (
    Interval,
    burst_size,
    chance_of_few,
    ratio_interval,
)
from necroscope.fleet.lake_tables import DAY_NS, NodeKey
from necroscope.fleet.questions.fact_changes import Change, FactState, read_changes
from necroscope.fleet.questions.gauge_changes import GaugeChange, read_gauge_changes
from necroscope.fleet.questions.occurrences import Subject, read_moments
from necroscope.fleet.questions.presence import Presence, read_presence
from necroscope.fleet.questions.success import JobRates, read_success
from necroscope.model.span import Span
from necroscope.model.units import format_moment


@dataclass(frozen=True, slots=True)
class Rates:
    """Before and after, on the same nodes; `observed` in node-days. `ratio` is the rate after in
    parts of that before.
    """

    nodes: int
    times_before: int
    times_after: int
    days_before: float
    days_after: float
    affected_before: int
    affected_after: int
    burst: float

    @property
    def expected(self) -> float | None:
        """Times after, had the rate of before gone on. None: nothing was observed before."""
        return self.times_before / self.days_before * self.days_after if self.days_before else None

    @property
    def interval(self) -> Interval | None:
        if not self.days_before or not self.days_after:
            return None
        return ratio_interval(
            self.times_after / self.burst,
            self.times_before / self.burst,
            self.days_after,
            self.days_before,
        )

    @property
    def chance(self) -> float | None:
        if not self.days_before or not self.days_after:
            return None
        return chance_of_few(
            self.times_after / self.burst,
            self.times_before / self.burst,
            self.days_after,
            self.days_before,
        )

    def as_json(self) -> dict[str, Any]:
        interval = self.interval
        return {
            "nodes": self.nodes,
            "before": {
                "times": self.times_before,
                "node_days": round(self.days_before, 2),
                "affected": self.affected_before,
            },
            "after": {
                "times": self.times_after,
                "node_days": round(self.days_after, 2),
                "affected": self.affected_after,
            },
            "expected": None if self.expected is None else round(self.expected, 2),
            "ratio_low": None if interval is None else interval.low,
            "ratio_high": None
            if interval is None or interval.high == float("inf")
            else interval.high,
            "chance": self.chance,
            "burst": round(self.burst, 2),
        }


def change_summary(state: str, about: str | None, changed: Rates, others: Rates | None) -> str:
    if about is None:
        return f"{state} on {changed.nodes} nodes; see how their jobs ended before and after"
    head = (
        f"since {state}: {changed.times_after} {about} on {changed.nodes} nodes in"
        f" {_days(changed.days_after)}"
    )
    if changed.expected is None:
        return f"{head}; nothing was observed before, so nothing can be expected"
    text = f"{head}, expected {changed.expected:.0f} from the {_days(changed.days_before)} before"
    interval = changed.interval
    if interval is not None:
        high = "without bound" if interval.high == float("inf") else f"{interval.high:.0%}"
        text += f": the rate is {interval.low:.0%} to {high} of what it was (95 %)"
    if others is not None and others.expected is not None:
        untreated = f"{others.times_after}, expected {others.expected:.0f}"
        text += f"; on {others.nodes} nodes without the change over the same time: {untreated}"
    return text


def _days(days: float) -> str:
    return f"{days:,.0f} node-days" if days >= 10 else f"{days:.1f} node-days"


SCHEMA: Final = 1


@dataclass(frozen=True, slots=True)
class ChangeAnswer:
    """`others` are the nodes that did not change; None where there are none."""

    state: FactState
    about: Subject | None
    span: Span
    first_ns: int
    last_ns: int
    changed: Rates
    others: Rates | None
    jobs: tuple[JobRates, ...]
    gauges: tuple[GaugeChange, ...]
    notes: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        about = None if self.about is None else str(self.about)
        return {
            "schema": SCHEMA,
            "fact": {"kind": self.state.kind, "name": self.state.name, "value": self.state.value},
            "about": None if self.about is None else self.about.as_json(),
            **self.span.as_json(),
            "first_change": format_moment(self.first_ns),
            "last_change": format_moment(self.last_ns),
            "summary": change_summary(str(self.state), about, self.changed, self.others),
            "changed": self.changed.as_json(),
            "others": None if self.others is None else self.others.as_json(),
            "jobs": [each.as_json() for each in self.jobs],
            "gauges": [each.as_json() for each in self.gauges],
            "notes": list(self.notes),
        }


def change(
    questions: LakeQuestions, state: FactState, subject: Subject | None, span: Span
) -> ChangeAnswer:
    changes = read_changes(questions, state, span)
    presence = read_presence(questions, span)
    seen = presence.nodes()
    silent = len(changes.changed.keys() - seen)
    changed = {node: each for node, each in changes.changed.items() if node in seen}
    moments = read_moments(questions, subject, span) if subject is not None else {}
    middle_ns = median_low(each.at_ns for each in changes.changed.values())
    unchanged = dict.fromkeys(changes.unchanged & seen, Change(middle_ns, span.to_ns))
    others = _rates(unchanged, moments, presence, span) if unchanged else None
    notes = (
        [f"{silent} nodes changed but sent no pulse in this time: they are left out"]
        if silent
        else []
    )
    at_ns = [each.at_ns for each in changes.changed.values()]
    jobs = read_success(questions, changed, span)
    return ChangeAnswer(
        state,
        subject,
        span,
        min(at_ns),
        max(at_ns),
        _rates(changed, moments, presence, span),
        others,
        jobs,
        read_gauge_changes(questions, changed, span),
        tuple(notes),
    )


def _rates(
    changes: Mapping[NodeKey, Change],
    moments: Mapping[NodeKey, list[int]],
    presence: Presence,
    span: Span,
) -> Rates:
    before, after, days_before, days_after = [], [], [], []
    for node, each in changes.items():
        own = moments.get(node, ())
        before.append(sum(moment < each.at_ns for moment in own))
        after.append(sum(each.at_ns <= moment < each.until_ns for moment in own))
        days_before.append(presence.observed_ns(node, Span(span.from_ns, each.at_ns)) / DAY_NS)
        days_after.append(presence.observed_ns(node, Span(each.at_ns, each.until_ns)) / DAY_NS)
    return Rates(
        len(changes),
        sum(before),
        sum(after),
        sum(days_before),
        sum(days_after),
        _more_than_none(before),
        _more_than_none(after),
        burst_size(before, days_before),
    )


def _more_than_none(counts: Iterable[int]) -> int:
    return sum(count > 0 for count in counts)
