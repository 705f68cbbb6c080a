"""Real answers of systemd, by question."""

import json
from pathlib import Path
from typing import Any

import pytest

from necroscope.sources.systemd import wire
from necroscope.sources.systemd.bus import BusQuestion

ROUNDS = Path(__file__).parents[3] / "data/systemd/rounds.json"

LIST = "/org/freedesktop/systemd1 Manager ListUnitsByPatterns () ('*.service', '*.timer')"


def key(question: BusQuestion) -> str:
    return " ".join(
        [
            question.path,
            question.interface.rpartition(".")[2],
            question.member,
            *map(str, question.arguments),
        ]
    )


class CapturedBus:
    """Answers from the capture, parsed from the very bytes; what was not captured is an error of
    systemd's.
    """

    def __init__(self, rounds: list[dict[str, str]]) -> None:
        self.rounds = rounds
        self.now = 0
        self.asked: list[BusQuestion] = []
        self.is_closed = False
        self.changed: dict[str, Any] = {}

    def ask(self, questions: list[BusQuestion]) -> list[tuple[Any, ...] | None]:
        return [None if message is None else message.body() for message in self.messages(questions)]

    def messages(self, questions: list[BusQuestion]) -> list[Any]:
        self.asked += questions
        return [self._answer(question) for question in questions]

    def close(self) -> None:
        self.is_closed = True

    def _answer(self, question: BusQuestion) -> "wire.Message | Changed | None":
        name = key(question)
        if name in self.changed:
            return Changed(self.changed[name])
        raw = self.rounds[self.now].get(name)
        return wire.parse_message(bytes.fromhex(raw)) if raw is not None else None

    def listed(self) -> list[tuple[Any, ...]]:
        """The list of services and timers as it was captured."""
        return list(wire.parse_message(bytes.fromhex(self.rounds[self.now][LIST])).body()[0])


class Changed:
    """An answer that a test made up."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.raw = repr(value).encode()

    def body(self) -> tuple[Any]:
        return (self.value,)


@pytest.fixture
def captured() -> CapturedBus:
    return CapturedBus(json.loads(ROUNDS.read_text()))
