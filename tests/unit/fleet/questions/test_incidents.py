"""Incidents of all nodes."""

from pathlib import Path
from typing import Any

import pytest
from tests.fleet_lakes import DrawnLake, moment

from necroscope.errors import UsageError
from necroscope.fleet.ask import LakeQuestions
from necroscope.fleet.questions.incidents import incident_report, incidents
from necroscope.model.span import Span

SPAN = Span(moment(0), moment(10))


@pytest.fixture
def questions(tmp_path: Path) -> LakeQuestions:
    drawn = DrawnLake(tmp_path)
    for node, zone in (("n1", "a"), ("n2", "b")):
        drawn.alive(node, range(10))
        drawn.fact(node, "label", "zone", zone)
    drawn.incident("n1", "i1", "unknown", 2, analysed_ns=1)
    drawn.incident("n1", "i1", "zombie-memcg-walk", 2, analysed_ns=2)
    drawn.incident("n1", "i2", "zombie-memcg-walk", 4)
    drawn.incident("n2", "i1", "vm-steal", 3)
    return LakeQuestions(drawn.write(), moment(10))


def test_the_newest_analysis_of_each_incident_counts_and_the_newest_incident_comes_first(
    questions: LakeQuestions,
) -> None:
    answer = incidents(questions, SPAN)
    assert [(each["node"], each["id"], each["cause"]) for each in answer.incidents] == [
        ("n1", "i2", "zombie-memcg-walk"),
        ("n2", "i1", "vm-steal"),
        ("n1", "i1", "zombie-memcg-walk"),
    ]
    assert answer.causes == (("zombie-memcg-walk", 2, 1), ("vm-steal", 1, 1))
    assert answer.incidents[0]["events"] == ["nic_reset"]


def test_they_are_chosen_by_node_and_cause_and_cut_to_a_limit(questions: LakeQuestions) -> None:
    assert incidents(questions, SPAN, where="zone=b").count == 1
    assert incidents(questions, SPAN, cause="vm-steal").count == 1
    cut = incidents(questions, SPAN, limit=1)
    assert (cut.count, len(cut.incidents)) == (3, 1)
    with pytest.raises(UsageError) as found:
        incidents(questions, SPAN, cause="vm-stela")
    assert "vm-steal, zombie-memcg-walk" in found.value.hint


def test_one_of_them_is_reported_with_its_report(questions: LakeQuestions) -> None:
    assert incident_report(questions, "eu-1", "n1", "i1")["report"] == {"id": "x"}
    with pytest.raises(UsageError, match="no incident"):
        incident_report(questions, "eu-1", "n1", "i9")


def test_only_those_that_are_shown_leave_the_database(
    questions: LakeQuestions, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, widths = LakeQuestions.rows, []

    def watched(self: LakeQuestions, *asked: Any) -> list[tuple[Any, ...]]:
        found = real(self, *asked)
        widths.extend(len(row) for row in found)
        return found

    monkeypatch.setattr(LakeQuestions, "rows", watched)
    answer = incidents(questions, SPAN, limit=1)
    assert (answer.count, len(answer.incidents)) == (3, 1)
    assert sum(width > 3 for width in widths) == 1


def test_nodes_and_cause_are_asked_for_together(questions: LakeQuestions) -> None:
    answer = incidents(questions, SPAN, where="zone=a", cause="zombie-memcg-walk", limit=1)
    assert (answer.count, [each["id"] for each in answer.incidents]) == (2, ["i2"])
    assert answer.causes == (("zombie-memcg-walk", 2, 1),)
    with pytest.raises(UsageError, match="vm-steal"):
        incidents(questions, SPAN, where="zone=a", cause="vm-steal")
    assert incidents(questions, SPAN, where="node=nobody").count == 0
