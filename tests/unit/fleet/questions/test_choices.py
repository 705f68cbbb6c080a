"""What a page can offer to choose, of a drawn fleet."""

from pathlib import Path
from typing import Any

import pytest
from tests.drawn_fleet import CAUSE, HOUR_NS, drawn_fleet
from tests.fleet_batches import MINUTE_NS, START_NS, made_batch, put_in_inbox

from necroscope.fleet.ask import LakeQuestions
from necroscope.fleet.compaction import Compactor
from necroscope.fleet.lake import Lake
from necroscope.fleet.questions import choices as module
from necroscope.fleet.questions.choices import choices, worst_cores
from necroscope.model.span import Span


def test_events_causes_and_labels_are_counted(tmp_path: Path) -> None:
    questions = LakeQuestions(drawn_fleet(tmp_path / "lake", START_NS), START_NS)
    found = choices(questions, Span(START_NS - 48 * HOUR_NS, START_NS)).as_json()
    assert found["events"] == [
        {"name": "unit_restart", "nodes": 60},
        {"name": "nic_reset", "nodes": 16},
    ]
    assert found["clusters"] == ["eu-1"]
    assert found["causes"] == [{"name": CAUSE, "nodes": 16}]
    assert found["labels"] == [
        {"name": "image", "values": 2},
        {"name": "note", "values": 1},
        {"name": "zone", "values": 3},
    ]


def test_a_time_without_anything_offers_nothing(tmp_path: Path) -> None:
    questions = LakeQuestions(drawn_fleet(tmp_path / "lake", START_NS), START_NS)
    found = choices(questions, Span(START_NS - 900 * HOUR_NS, START_NS - 800 * HOUR_NS)).as_json()
    assert found["clusters"] == found["events"] == found["causes"] == found["labels"] == []


NOW_NS = START_NS + 600 * MINUTE_NS


def minutes(cpu: int, minute: int, **worst: float | None) -> dict[str, list[Any]]:
    columns = {f"worst_{mode}": [value] for mode, value in worst.items()}
    return {
        "time": [START_NS // MINUTE_NS * MINUTE_NS + minute * MINUTE_NS],
        "cpu": [cpu],
        "ticks": [60],
        **columns,
    }


@pytest.fixture
def questions(tmp_path: Path) -> LakeQuestions:
    lake = Lake.open(str(tmp_path / "lake"))
    batches = [
        made_batch("gpu-1", 1, core_minutes=minutes(5, 10, system=0.4, softirq=0.9, busy=1.0)),
        made_batch("gpu-1", 2, core_minutes=minutes(6, 595, system=0.7)),
        made_batch("gpu-2", 3, core_minutes=minutes(0, 595, system=0.1, steal=0.2)),
        made_batch("gpu-3", 4, core_minutes=minutes(0, 595, busy=1.0)),
    ]
    put_in_inbox(lake, START_NS, "c", *batches)
    Compactor(lake, "c", lambda: START_NS).compact()
    return LakeQuestions(lake, NOW_NS)


def found(questions: LakeQuestions) -> list[tuple[str, int, str, float]]:
    cores = worst_cores(questions, Span(START_NS - MINUTE_NS, NOW_NS)).as_json()["cores"]
    return [(core["node"], core["core"], core["mode"], core["share"]) for core in cores]


def test_the_gravest_mode_of_the_worst_tick_is_reported_and_user_time_is_not(
    questions: LakeQuestions,
) -> None:
    assert found(questions) == [("gpu-1", 5, "softirq", 0.9), ("gpu-2", 0, "steal", 0.2)]


def test_of_a_large_fleet_only_the_newest_minutes_are_read(
    questions: LakeQuestions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MOST_ROWS", 0)
    assert found(questions) == [("gpu-1", 6, "system", 0.7), ("gpu-2", 0, "steal", 0.2)]
