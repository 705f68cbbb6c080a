"""Verdicts as they are found: once for a short recording, hour by hour for a long one."""

from pathlib import Path
from typing import Any

import pytest
from tests.drawn_recording import START_NS, draw

from necroscope.model.units import NS_PER_S
from necroscope.store.query import Store
from necroscope.views.web.reports import Reports

HOUR_NS = 3600 * NS_PER_S


class Part:
    """Is ready when the test says so."""

    def __init__(self) -> None:
        self.answer: dict[str, Any] | None = None

    def ready(self) -> bool:
        return self.answer is not None

    def get(self) -> dict[str, Any]:
        assert self.answer is not None
        return self.answer


class Workers:
    """In place of the process."""

    def __init__(self) -> None:
        self.asked: list[tuple[tuple[int, int], Part]] = []

    def apply_async(self, func: Any, args: tuple[Path, int | None, tuple[int, int]]) -> Part:
        self.asked.append((args[2], Part()))
        return self.asked[-1][1]

    def terminate(self) -> None:
        self.asked.clear()


def incident(at_ns: int) -> dict[str, Any]:
    return {"from_ns": str(at_ns), "to_ns": str(at_ns + 1)}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(draw(tmp_path / "r", "    time:  0.0\n           main\n"))


def test_a_short_recording_is_asked_once_and_again_when_it_grew(store: Store, monkeypatch) -> None:
    asked: list[int | None] = []
    reports = Reports(store, lambda directory, at_ns, span: asked.append(at_ns) or {"incidents": [], "notes": []})
    assert reports.answer()["is_complete"] is True
    reports.answer()
    reports.answer(7)
    assert asked == [None, 7]
    info = store.info()
    monkeypatch.setattr(Store, "info", lambda self: type("Info", (), {"from_ns": info.from_ns, "to_ns": (info.to_ns or 0) + 1})())
    reports.answer()
    assert asked == [None, 7, None]


def test_a_long_recording_tells_what_was_found_until_now_newest_first(store: Store, monkeypatch) -> None:
    span = {"from_ns": START_NS, "to_ns": START_NS + 3 * HOUR_NS - 1}
    monkeypatch.setattr(Store, "info", lambda self: type("Info", (), span)())
    reports, workers = Reports(store, lambda *_: {}), Workers()
    reports._workers = workers
    assert reports.answer() == {"incidents": [], "notes": [], "is_complete": False, "progress": 0.0}
    (newest_span, newest), *older = workers.asked
    assert newest_span[0] < START_NS + 2 * HOUR_NS < newest_span[1]
    newest.answer = {"incidents": [incident(START_NS + 2 * HOUR_NS + 5)], "notes": ["a"]}
    assert reports.answer()["progress"] == pytest.approx(1 / 3)
    # An incident just before the hour is seen from both sides and told once.
    twice = incident(START_NS + 2 * HOUR_NS - 5)
    older[0][1].answer = {"incidents": [twice, incident(START_NS + 2 * HOUR_NS + 5)], "notes": ["a"]}
    older[1][1].answer = {"incidents": [], "notes": []}
    answer = reports.answer()
    assert answer["is_complete"] is True
    assert answer["notes"] == ["a"]
    assert len(answer["incidents"]) == 2
    assert len(workers.asked) == 3
