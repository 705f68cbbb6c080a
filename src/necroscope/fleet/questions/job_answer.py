"""The question about one job, with its words as text: what a person asks at night."""

from collections.abc import Callable
from typing import Final

from necroscope.fleet.ask import LakeQuestions
from necroscope.fleet.questions.job import job
from necroscope.fleet.questions.words import Json, Words, parse_span
from necroscope.model.units import parse_moment_ns


def _job(questions: LakeQuestions, words: Words) -> Json:
    at, span = words.get("at"), parse_span("job", questions, words)
    at_ns = None if at is None else parse_moment_ns(at, questions.now_ns)
    return job(questions, words.get("job"), span, at_ns)


ANSWERS: Final[dict[str, Callable[[LakeQuestions, Words], Json]]] = {"job": _job}
