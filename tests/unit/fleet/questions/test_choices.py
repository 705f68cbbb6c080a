"""What a page can offer to choose, of a drawn fleet."""

from pathlib import Path

from tests.drawn_fleet import CAUSE, HOUR_NS, drawn_fleet
from tests.fleet_batches import START_NS

from necroscope.fleet.ask import LakeQuestions
from necroscope.fleet.questions.choices import choices
from necroscope.fleet.span import Span


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
