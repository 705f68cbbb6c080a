"""Verdicts as they are found: once for a short recording, hour by hour for a long one."""

from concurrent.futures import Future
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from tests.drawn_recording import START_NS, draw

from necroscope.errors import RecordingError
from necroscope.model.units import NS_PER_S
from necroscope.store.query import Store
from necroscope.views.web import reports as reports_module
from necroscope.views.web.incident_search import SearchResult
from necroscope.views.web.reports import Reports

HOUR_NS = 3600 * NS_PER_S


class Search:
    """In place of the process: the test answers when it likes."""

    def __init__(self) -> None:
        self.asked: list[tuple[tuple[int, int], Future[SearchResult]]] = []

    def submit(self, span: tuple[int, int]) -> "Future[SearchResult]":
        self.asked.append((span, Future()))
        return self.asked[-1][1]

    def close(self) -> None:
        self.asked.clear()


def incident(at_ns: int) -> dict[str, Any]:
    return {"from_ns": str(at_ns), "to_ns": str(at_ns + 1)}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(draw(tmp_path / "r", "    time:  0.0\n           main\n"))


def test_a_short_recording_is_asked_once_and_again_when_it_grew(store: Store, monkeypatch) -> None:
    asked: list[int | None] = []
    reports = Reports(
        store, lambda directory, at_ns, span: asked.append(at_ns) or {"incidents": [], "notes": []}
    )
    assert reports.answer()["is_complete"] is True
    reports.answer()
    reports.answer(7)
    assert asked == [None, 7]
    info = store.info()
    monkeypatch.setattr(
        Store,
        "info",
        lambda self: type("Info", (), {"from_ns": info.from_ns, "to_ns": (info.to_ns or 0) + 1})(),
    )
    reports.answer()
    assert asked == [None, 7, None]


@pytest.fixture
def of_three_hours(store: Store, monkeypatch) -> tuple[Reports, Search]:
    span = {"from_ns": START_NS, "to_ns": START_NS + 3 * HOUR_NS - 1}
    monkeypatch.setattr(Store, "info", lambda self: type("Info", (), span)())
    asked = Search()
    return Reports(store, lambda *_: {}, asked), asked


def test_a_long_recording_tells_what_was_found_until_now_newest_first(
    of_three_hours: tuple[Reports, Search],
) -> None:
    reports, asked = of_three_hours
    assert reports.answer() == {
        "incidents": [],
        "notes": [],
        "failed": [],
        "is_complete": False,
        "progress": 0.0,
    }
    (newest_span, newest), *older = asked.asked
    assert newest_span[0] < START_NS + 2 * HOUR_NS < newest_span[1]
    newest.set_result(SearchResult([incident(START_NS + 2 * HOUR_NS + 5)], ["a"]))
    assert reports.answer()["progress"] == pytest.approx(1 / 3)
    # An incident just before the hour is seen from both sides and told once.
    twice = incident(START_NS + 2 * HOUR_NS - 5)
    older[0][1].set_result(SearchResult([twice, incident(START_NS + 2 * HOUR_NS + 5)], ["a"]))
    older[1][1].set_result(SearchResult([], []))
    answer = reports.answer()
    assert answer["is_complete"] is True
    assert answer["notes"] == ["a"]
    assert len(answer["incidents"]) == 2
    assert len(asked.asked) == 3


def test_an_hour_that_fails_is_reported_and_the_others_are_shown(
    of_three_hours: tuple[Reports, Search],
) -> None:
    reports, asked = of_three_hours
    reports.answer()
    newest, middle, oldest = (part for _, part in asked.asked)
    newest.set_result(SearchResult([incident(START_NS + 2 * HOUR_NS + 5)], []))
    middle.set_result(SearchResult([], [], "ValueError: odd"))
    oldest.set_result(SearchResult([incident(START_NS + 5)], []))
    answer = reports.answer()
    assert answer["is_complete"] is True
    assert len(answer["incidents"]) == 2
    hour = {"from_ns": str(START_NS + HOUR_NS), "to_ns": str(START_NS + 2 * HOUR_NS)}
    assert answer["failed"] == [{**hour, "error": "ValueError: odd"}]


def test_a_short_recording_that_cannot_be_looked_at_says_why(store: Store) -> None:
    def fails(*_: object) -> dict[str, Any]:
        raise RecordingError("no table of that name")

    (failed,) = Reports(store, fails).answer()["failed"]
    assert failed["error"] == "no table of that name"


def test_a_verdict_that_takes_long_is_not_waited_for_and_not_made_twice(
    store: Store, monkeypatch
) -> None:
    monkeypatch.setattr(reports_module, "TIME_LIMIT_S", 0.0)
    may_end, asked = Event(), []

    def slow(*_: object) -> dict[str, Any]:
        asked.append(1)
        may_end.wait(10)
        return {"incidents": [incident(START_NS)], "notes": []}

    reports = Reports(store, slow)
    assert reports.answer() == {
        "incidents": [],
        "notes": [],
        "failed": [],
        "is_complete": False,
        "progress": 0.0,
    }
    may_end.set()
    monkeypatch.setattr(reports_module, "TIME_LIMIT_S", 60.0)
    assert len(reports.answer()["incidents"]) == 1
    assert len(asked) == 1
