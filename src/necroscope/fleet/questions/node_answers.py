"""Questions about nodes, their incidents, jobs and differences, each with its words as text."""

from collections.abc import Callable
from typing import Final

from necroscope.fleet.ask import LakeQuestions
from necroscope.fleet.questions.baseline import baseline
from necroscope.fleet.questions.change import change
from necroscope.fleet.questions.diff import diff
from necroscope.fleet.questions.fact_changes import FactState
from necroscope.fleet.questions.flame import flame
from necroscope.fleet.questions.incidents import incident_report, incidents
from necroscope.fleet.questions.jobs import jobs
from necroscope.fleet.questions.next_nodes import next_nodes
from necroscope.fleet.questions.nodes import nodes
from necroscope.fleet.questions.occurrences import about
from necroscope.fleet.questions.timeline import timeline
from necroscope.fleet.questions.trial import parse_nodes, trial
from necroscope.fleet.questions.why import why
from necroscope.fleet.questions.words import (
    MOST_LISTED,
    Json,
    Words,
    needed,
    parse_number,
    parse_span,
)
from necroscope.model.units import parse_moment_ns


def _why(questions: LakeQuestions, words: Words) -> Json:
    of_jobs = words.get("job_failed") == "true"
    subject = about(words.get("event"), words.get("cause"), of_jobs=of_jobs)
    return why(
        questions, subject, parse_span("why", questions, words), words.get("where")
    ).as_json()


def _next(questions: LakeQuestions, words: Words) -> Json:
    subject = about(words.get("event"), words.get("cause"))
    return next_nodes(
        questions, subject, parse_span("next", questions, words), words.get("where")
    ).as_json()


def _diff(questions: LakeQuestions, words: Words) -> Json:
    a, b = needed(words, "a"), needed(words, "b")
    return diff(
        questions, a, b, parse_span("diff", questions, words), with_all=words.get("all") == "true"
    ).as_json()


def _baseline(questions: LakeQuestions, words: Words) -> Json:
    span = parse_span("baseline", questions, words)
    return baseline(questions, span, words.get("where"), words.get("expected")).as_json()


def _nodes(questions: LakeQuestions, words: Words) -> Json:
    return nodes(questions, parse_span("nodes", questions, words), words.get("where")).as_json()


def _incidents(questions: LakeQuestions, words: Words) -> Json:
    span = parse_span("incidents", questions, words)
    limit = parse_number(words.get("limit") or "100", 1, MOST_LISTED)
    return incidents(questions, span, words.get("where"), words.get("cause"), limit).as_json()


def _incident(questions: LakeQuestions, words: Words) -> Json:
    return incident_report(
        questions, needed(words, "cluster"), needed(words, "node"), needed(words, "id")
    )


def _flame(questions: LakeQuestions, words: Words) -> Json:
    return flame(
        questions, parse_span("flame", questions, words), words.get("where"), words.get("baseline")
    ).as_json()


def _change(questions: LakeQuestions, words: Words) -> Json:
    subject = (
        about(words.get("event"), words.get("cause"))
        if words.get("event") or words.get("cause")
        else None
    )
    return change(
        questions,
        FactState.parse(needed(words, "fact")),
        subject,
        parse_span("change", questions, words),
    ).as_json()


def _trial(questions: LakeQuestions, words: Words) -> Json:
    subject = about(words.get("event"), words.get("cause"))
    treated, untreated = (parse_nodes(needed(words, side)) for side in ("treated", "untreated"))
    until_ns = parse_moment_ns(words.get("until") or "-0s", questions.now_ns)
    return trial(questions, subject, treated, untreated, until_ns).as_json()


def _timeline(questions: LakeQuestions, words: Words) -> Json:
    subject = about(words.get("event"), words.get("cause"))
    span = parse_span("timeline", questions, words)
    return timeline(
        questions, subject, words.get("by") or "zone", span, words.get("where")
    ).as_json()


def _jobs(questions: LakeQuestions, words: Words) -> Json:
    span, limit = parse_span("jobs", questions, words), words.get("limit") or "100"
    most = parse_number(limit, 1, MOST_LISTED)
    return jobs(questions, span, words.get("where"), words.get("by") or "kind", most)


ANSWERS: Final[dict[str, Callable[[LakeQuestions, Words], Json]]] = {
    "why": _why,
    "next": _next,
    "diff": _diff,
    "baseline": _baseline,
    "nodes": _nodes,
    "incidents": _incidents,
    "incident": _incident,
    "flame": _flame,
    "change": _change,
    "trial": _trial,
    "timeline": _timeline,
    "jobs": _jobs,
}
