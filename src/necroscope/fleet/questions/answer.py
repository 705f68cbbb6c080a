"""Every question by its name, with its words as text: command line and collector ask in the same
way, and get the same JSON.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from necroscope.errors import UsageError
from necroscope.fleet.ask import LakeQuestions
from necroscope.fleet.questions.baseline import baseline
from necroscope.fleet.questions.change import change
from necroscope.fleet.questions.diff import diff
from necroscope.fleet.questions.fact_changes import FactState
from necroscope.fleet.questions.flame import flame
from necroscope.fleet.questions.incidents import incident_report, incidents
from necroscope.fleet.questions.job import job
from necroscope.fleet.questions.jobs import jobs
from necroscope.fleet.questions.next_nodes import next_nodes
from necroscope.fleet.questions.nodes import nodes
from necroscope.fleet.questions.occurrences import about
from necroscope.fleet.questions.timeline import timeline
from necroscope.fleet.questions.trial import parse_nodes, trial
from necroscope.fleet.questions.why import why
from necroscope.model.span import Span
from necroscope.model.units import parse_moment_ns

Words = Mapping[str, str | None]
Json = dict[str, Any]
# How far back a question looks if nobody says.
SINCE: Final = {
    "why": "-30d",
    "next": "-30d",
    "diff": "-7d",
    "baseline": "-7d",
    "nodes": "-7d",
    "incidents": "-7d",
    "flame": "-1h",
    "change": "-30d",
    "timeline": "-30d",
    "job": "-30d",
    "jobs": "-1d",
}
_MOST_INCIDENTS: Final = 10_000


def answer(name: str, questions: LakeQuestions, words: Words) -> Json:
    """What is not said, or empty, has its default."""
    said = {word: value for word, value in words.items() if value not in (None, "")}
    return _ANSWERS[name](questions, said)


def _span(name: str, questions: LakeQuestions, words: Words) -> Span:
    return Span.parse(words.get("since") or SINCE[name], words.get("until"), questions.now_ns)


def _why(questions: LakeQuestions, words: Words) -> Json:
    of_jobs = words.get("job_failed") == "true"
    asked = about(words.get("event"), words.get("cause"), of_jobs=of_jobs)
    return why(questions, asked, _span("why", questions, words), words.get("where")).as_json()


def _next(questions: LakeQuestions, words: Words) -> Json:
    asked = about(words.get("event"), words.get("cause"))
    return next_nodes(
        questions, asked, _span("next", questions, words), words.get("where")
    ).as_json()


def _diff(questions: LakeQuestions, words: Words) -> Json:
    a, b = _needed(words, "a"), _needed(words, "b")
    return diff(
        questions, a, b, _span("diff", questions, words), with_all=words.get("all") == "true"
    ).as_json()


def _baseline(questions: LakeQuestions, words: Words) -> Json:
    span = _span("baseline", questions, words)
    return baseline(questions, span, words.get("where"), words.get("expected")).as_json()


def _nodes(questions: LakeQuestions, words: Words) -> Json:
    return nodes(questions, _span("nodes", questions, words), words.get("where")).as_json()


def _incidents(questions: LakeQuestions, words: Words) -> Json:
    span = _span("incidents", questions, words)
    limit = _number(words.get("limit") or "100", 1, _MOST_INCIDENTS)
    return incidents(questions, span, words.get("where"), words.get("cause"), limit).as_json()


def _incident(questions: LakeQuestions, words: Words) -> Json:
    return incident_report(
        questions, _needed(words, "cluster"), _needed(words, "node"), _needed(words, "id")
    )


def _flame(questions: LakeQuestions, words: Words) -> Json:
    return flame(
        questions, _span("flame", questions, words), words.get("where"), words.get("baseline")
    ).as_json()


def _change(questions: LakeQuestions, words: Words) -> Json:
    asked = (
        about(words.get("event"), words.get("cause"))
        if words.get("event") or words.get("cause")
        else None
    )
    return change(
        questions, FactState.parse(_needed(words, "fact")), asked, _span("change", questions, words)
    ).as_json()


def _trial(questions: LakeQuestions, words: Words) -> Json:
    asked = about(words.get("event"), words.get("cause"))
    treated, untreated = (parse_nodes(_needed(words, side)) for side in ("treated", "untreated"))
    until_ns = parse_moment_ns(words.get("until") or "-0s", questions.now_ns)
    return trial(questions, asked, treated, untreated, until_ns).as_json()


def _timeline(questions: LakeQuestions, words: Words) -> Json:
    asked = about(words.get("event"), words.get("cause"))
    span = _span("timeline", questions, words)
    return timeline(questions, asked, words.get("by") or "zone", span, words.get("where")).as_json()


def _job(questions: LakeQuestions, words: Words) -> Json:
    at, span = words.get("at"), _span("job", questions, words)
    at_ns = None if at is None else parse_moment_ns(at, questions.now_ns)
    return job(questions, words.get("job"), span, at_ns)


def _jobs(questions: LakeQuestions, words: Words) -> Json:
    span, limit = _span("jobs", questions, words), words.get("limit") or "100"
    most = _number(limit, 1, _MOST_INCIDENTS)
    return jobs(questions, span, words.get("where"), words.get("by") or "kind", most)


_ANSWERS: Final[dict[str, Callable[[LakeQuestions, Words], Json]]] = {
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
    "job": _job,
    "jobs": _jobs,
}


def _needed(words: Words, name: str) -> str:
    value = words.get(name)
    if not value:
        raise UsageError(f"{name!r} is missing")
    return value


def _number(text: str, least: int, most: int) -> int:
    if not text.isdecimal() or not least <= int(text) <= most:
        raise UsageError(f"{text!r} is not a number from {least} to {most:,}")
    return int(text)
