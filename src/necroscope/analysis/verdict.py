"""Ranks the causes of a case. A cause without its confirming signal is never named; `unknown` is a
right answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Final

from necroscope.analysis import origin_facts, traffic
from necroscope.analysis.case import Case
from necroscope.analysis.cause import Assessment, Cause
from necroscope.analysis.quality import Shortcoming, find_gaps, unrecorded
from necroscope.analysis.report import UNKNOWN, Alternative, Culprit, Evidence, Verdict
from necroscope.analysis.thresholds import Thresholds

NAMED: Final = 0.5
# Chosen so that a confirmed cause that explains all is nearly sure, and an unconfirmed one is never
# named.
_CONFIRMED: Final = 0.95
_UNCONFIRMED: Final = 0.45
# From this share of the incident on a mechanism explains it; what else a core does is always
# some.
_EXPLAINS_ALL: Final = 0.6
# Two causes that explain the same incident nearly as well cannot both be right with full
# confidence.
_CLOSE: Final = 0.08
_CLOSE_FACTOR: Final = 0.85
_AS_MUCH: Final = 0.5
_STRONG_DOUBT: Final = 0.5
# Evidence of the mechanism comes first, and what is known of the origin before it gets long: views
# show the first six pieces.
_BEFORE_ORIGIN: Final = 5
_MOST_ALTERNATIVES: Final = 4
_LEAST_ALTERNATIVE: Final = 0.05


@dataclass(frozen=True, slots=True)
class Contender:
    """A cause with its assessment, what it is worth here, what it could not see, and why it lost if
    it did.
    """

    cause: Cause
    assessment: Assessment
    confidence: float
    lacks: Sequence[Shortcoming] = ()
    unrecorded: str = ""
    why_not: str = ""


def weigh(
    case: Case, cause: Cause, limits: Thresholds, lacks: Sequence[Shortcoming]
) -> Contender | None:
    """What a cause is worth here by these thresholds; None if it has nothing to say, as `unknown`
    never has.
    """
    own = case.for_rule(limits)
    found = cause.assess(own) if cause.slug != UNKNOWN else None
    if found is None:
        return None
    tables = frozenset(own.node.asked)
    hides = find_gaps(case, tables)
    worth = confidence(found) * prod(lack.factor for lack in (*lacks, *hides))
    return Contender(
        cause, found, worth, hides, "" if found.is_confirmed else unrecorded(case, tables)
    )


def decide(
    case: Case, contenders: Sequence[Contender], unknown: Cause, lacks: Sequence[Shortcoming]
) -> tuple[Verdict, tuple[Alternative, ...]]:
    """The verdict and the causes that lost, with the reason."""
    ranked = sorted(_demote_general_causes(contenders), key=lambda one: -one.confidence)
    if ranked and ranked[0].confidence >= NAMED:
        best, others = _limit_confidence(ranked), ranked[1:]
    else:
        best, others = _without_a_cause(case, unknown, lacks), ranked
    doubts = tuple(Evidence(lack.text, *case.window, case.core) for lack in (*lacks, *best.lacks))
    kept = [other for other in others if other.confidence >= _LEAST_ALTERNATIVE]
    return _verdict(case, best, doubts), tuple(
        Alternative(other.cause.slug, other.confidence, _why_not(other, best))
        for other in kept[:_MOST_ALTERNATIVES]
    )


def _without_a_cause(case: Case, unknown: Cause, lacks: Sequence[Shortcoming]) -> Contender:
    cluster = case.cluster
    # What is weak, hurts nothing and has no cause is not an incident: what is known of it is not
    # worked out.
    is_incident = cluster.is_strong or cluster.is_question or cluster.has_victim
    found = unknown.assess(case.for_rule(unknown.limits)) if is_incident else None
    nothing = Assessment(0.0, is_confirmed=False, culprit=Culprit())
    return Contender(unknown, found or nothing, 0.3 * prod(lack.factor for lack in lacks))


def confidence(found: Assessment) -> float:
    """From what it explains, whether it is confirmed, and what speaks against it."""
    share = min(1.0, max(0.0, found.explains) / _EXPLAINS_ALL)
    base = _CONFIRMED if found.is_confirmed else _UNCONFIRMED
    return base * (0.3 + 0.7 * share) * (1.0 - min(1.0, max(0.0, found.doubt)))


def _demote_general_causes(contenders: Sequence[Contender]) -> list[Contender]:
    """Where another says the same more exactly, the general cause steps behind it."""
    return [
        _demote(one, [other for other in contenders if _is_more_exact(other, one)])
        for one in contenders
    ]


def _demote(one: Contender, exact: Sequence[Contender]) -> Contender:
    if not exact:
        return one
    best = max(exact, key=lambda other: other.confidence)
    return replace(
        one,
        confidence=min(one.confidence, 0.8 * best.confidence),
        why_not=f"{best.cause.slug} explains it more precisely",
    )


def _is_more_exact(other: Contender, one: Contender) -> bool:
    is_general = "*" in one.cause.yields_to and "*" not in other.cause.yields_to
    if other is one or not (other.cause.slug in one.cause.yields_to or is_general):
        return False
    is_as_much = other.assessment.explains >= _AS_MUCH * one.assessment.explains
    return other.assessment.is_confirmed and other.confidence >= NAMED and is_as_much


def _limit_confidence(ranked: Sequence[Contender]) -> Contender:
    best = ranked[0]
    rivals = [
        other
        for other in ranked[1:]
        if not other.why_not and best.confidence - other.confidence < _CLOSE
    ]
    return replace(best, confidence=max(NAMED, _CLOSE_FACTOR * best.confidence)) if rivals else best


def _verdict(case: Case, best: Contender, doubts: tuple[Evidence, ...]) -> Verdict:
    cause, found = best.cause, best.assessment
    culprit = found.culprit if found.culprit is not None else case.culprit()
    evidence = _with_share(case, culprit, found.evidence)
    return Verdict(
        cause=cause.slug,
        title=cause.title,
        confidence=best.confidence,
        summary=found.summary or cause.title,
        culprit=culprit,
        origin=found.origin,
        evidence=(
            *evidence[:_BEFORE_ORIGIN],
            *origin_facts.about(case, found.origin),
            *evidence[_BEFORE_ORIGIN:],
            *traffic.about(case),
        ),
        against=(*found.against, *doubts),
        fix=(*found.fix, *cause.fix),
        verify=tuple(cause.verify),
        will_not_help=tuple(cause.will_not_help),
        walked=found.walked,
    )


def _with_share(
    case: Case, culprit: Culprit | None, evidence: Sequence[Evidence]
) -> tuple[Evidence, ...]:
    """The evidence, and after its first pieces how much of the core the culprit had; if somebody
    had more, that too.
    """
    share = case.samples.share_of(culprit)
    if case.core is None or culprit is None or not share:
        return tuple(evidence)
    most = case.samples.now.tasks()[0]
    more = (
        ""
        if most.comm == culprit.comm or most.share <= share
        else f", {most.comm} {most.share:.0%}"
    )
    text = f"{culprit.comm} has {share:.0%} of core {case.core}'s samples{more}"
    return (*evidence[:2], case.evidence(text, "samples", case.core), *evidence[2:])


def _why_not(other: Contender, best: Contender) -> str:
    found = other.assessment
    if other.why_not:
        return other.why_not
    if found.against and (found.is_confirmed or found.doubt >= _STRONG_DOUBT):
        return found.against[0].text
    if not found.is_confirmed:
        lacking = f", and {other.unrecorded}" if other.unrecorded else ""
        return (
            f"not confirmed{lacking}; what would confirm it:"
            f" {found.would_confirm or other.cause.would_confirm or other.cause.confirming}"
        )
    if best.cause.slug != UNKNOWN and found.explains < best.assessment.explains:
        return (
            f"it explains {found.explains:.0%} of the incident, {best.cause.slug} explains"
            f" {best.assessment.explains:.0%}"
        )
    return f"it explains only {found.explains:.0%} of the incident"
