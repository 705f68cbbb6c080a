"""Real answers of systemd, by question."""

import json
from pathlib import Path
from typing import Any

import pytest

from necroscope.sources.systemd import wire
from necroscope.sources.systemd.bus import Question

ROUNDS = Path(__file__).parents[3] / "data/systemd/rounds.json"


def key(question: Question) -> str:
    return " ".join([question.path, question.interface.rpartition(".")[2], question.member, *map(str, question.arguments)])


class CapturedBus:
    """Answers from the capture, parsed from the very bytes; what was not captured is an error of systemd's."""

    def __init__(self, rounds: list[dict[str, str]]) -> None:
        self.rounds = rounds
        self.now = 0
        self.asked: list[Question] = []
        self.is_closed = False
        self.changed: dict[str, Any] = {}

    def ask(self, questions: list[Question]) -> list[tuple[Any, ...] | None]:
        self.asked += questions
        return [self._answer(question) for question in questions]

    def close(self) -> None:
        self.is_closed = True

    def _answer(self, question: Question) -> tuple[Any, ...] | None:
        name = key(question)
        if name in self.changed:
            return (self.changed[name],)
        raw = self.rounds[self.now].get(name)
        return wire.parse_message(bytes.fromhex(raw)).body if raw is not None else None


@pytest.fixture
def captured() -> CapturedBus:
    return CapturedBus(json.loads(ROUNDS.read_text()))
