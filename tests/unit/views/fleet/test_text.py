"""Answers about a fleet as text."""

from pathlib import Path
from typing import Any

import pytest
from tests.fleet_lakes import UNIT, DrawnLake, draw_story, moment

from necroscope.fleet.ask import LakeQuestions
from necroscope.fleet.questions.answer import answer
from necroscope.views.fleet.answers import (
    change_to_text,
    diff_to_text,
    incidents_to_text,
    nodes_to_text,
)
from necroscope.views.fleet.why import why_to_text

SPAN = {"since": "2026-04-01", "until": "2026-04-11"}


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> DrawnLake:
    path: Path = tmp_path_factory.mktemp("lake")
    story = draw_story(path)
    story.incident("gpu-000", "i1", "zombie-memcg-walk", 3)
    story.fact("gpu-001", "unit_file", UNIT, "enabled", day=0)
    story.fact("gpu-001", "unit_file", UNIT, "disabled", day=8)
    story.fact("gpu-002", "label", "evil\x1b[2Jname", "\u202egnp.exe", day=1)
    story.job("gpu-001", "train.service", "failure", 3)
    story.write()
    return story


def answer_of(drawn: DrawnLake, name: str, **words: str) -> dict[str, Any]:
    return answer(name, LakeQuestions(drawn.lake, moment(10)), {**SPAN, **words})


def test_why_tells_counts_the_deciding_nodes_how_sure_and_what_was_left_out(
    drawn: DrawnLake,
) -> None:
    text = " ".join(why_to_text(answer_of(drawn, "why", event="nic_reset")).split())
    for words in (
        "24 of 60 nodes were affected, 72 times",
        (
            f"unit_outcome {UNIT} is crash-loop goes with nic_reset: 24 of 26 nodes with it were"
            " affected (92 %)"
        ),
        "0 of 34 without (0 %)",
        "only a proxy 16 of 20 8 of 40",
        "zone is a only seems to matter: 17 of its 20 nodes have the first difference",
        "false discovery rate",
        f"unit_outcome {UNIT} is crash-loop, but not so that zone is a, affected: gpu-001, gpu-007",
        "1 fact: names of one node",
        "A place is never named as a cause",
    ):
        assert words in text


def test_why_that_cannot_separate_tells_the_experiment(tmp_path: Path) -> None:
    lonely = draw_story(tmp_path, disagree=0)
    lonely.write()
    text = " ".join(why_to_text(answer_of(lonely, "why", event="nic_reset")).split())
    assert "cannot separate" in text
    assert "the experiment that would decide" in text


def test_the_others_tell_what_they_hold(drawn: DrawnLake) -> None:
    assert "60 nodes" in nodes_to_text(answer_of(drawn, "nodes"))
    assert "zombie-memcg-walk" in incidents_to_text(answer_of(drawn, "incidents"))
    assert UNIT in diff_to_text(answer_of(drawn, "diff", a="zone=a", b="zone=b"))
    change = change_to_text(
        answer_of(drawn, "change", fact=f"unit_file:{UNIT}=disabled", event="nic_reset")
    )
    assert "0 nic_reset on 1 nodes" in change
    assert "0% of 1" in change


def test_hostile_names_steer_no_terminal(drawn: DrawnLake) -> None:
    texts = [
        nodes_to_text(answer_of(drawn, "nodes", where="node=gpu-002")),
        diff_to_text(answer_of(drawn, "diff", a="gpu-002", b="gpu-003")),
        why_to_text(answer_of(drawn, "why", event="nic_reset")),
    ]
    assert not [text for text in texts if "\x1b" in text or "\u202e" in text]
    assert "\\x1b[2Jname" in texts[1]
