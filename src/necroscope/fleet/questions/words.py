"""The words of a question, as text: what is missing or not valid is an error of who asks."""

from collections.abc import Mapping
from typing import Any, Final

from necroscope.errors import UsageError
from necroscope.fleet.ask import LakeQuestions
from necroscope.model.span import Span

Words = Mapping[str, str | None]
Json = dict[str, Any]
# How far back a question looks by default.
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
MOST_LISTED: Final = 10_000


def parse_span(name: str, questions: LakeQuestions, words: Words) -> Span:
    return Span.parse(words.get("since") or SINCE[name], words.get("until"), questions.now_ns)


def needed(words: Words, name: str) -> str:
    value = words.get(name)
    if not value:
        raise UsageError(f"{name!r} is missing")
    return value


def parse_number(text: str, least: int, most: int) -> int:
    if not text.isdecimal() or not least <= int(text) <= most:
        raise UsageError(f"{text!r} is not a number from {least} to {most:,}")
    return int(text)
