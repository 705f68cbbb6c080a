"""How nodes and groups differ."""

from pathlib import Path

import pytest
from tests.fleet_lakes import UNIT, DrawnLake, draw_story, moment

from necroscope.errors import UsageError
from necroscope.fleet.ask import LakeQuestions
from necroscope.fleet.questions.diff import diff
from necroscope.model.span import Span

SPAN = Span(moment(0), moment(10))


def drawn_fleet(path: Path) -> LakeQuestions:
    """Ten nodes; n0 has a rare kernel, and half of them another image."""
    drawn = DrawnLake(path)
    for number in range(10):
        drawn.alive(f"n{number}", [1])
        drawn.fact(f"n{number}", "kernel", "release", "6.6-rc1" if number == 0 else "5.4")
        drawn.fact(f"n{number}", "label", "image", "old" if number % 2 else "new")
        drawn.fact(f"n{number}", "cloud", "instance_id", f"i-{number}")
        drawn.fact(f"n{number}", "cgroup", "mode", "v2")
    return LakeQuestions(drawn.write(), moment(10))


def test_of_two_nodes_the_rarest_difference_comes_first(tmp_path: Path) -> None:
    answer = diff(drawn_fleet(tmp_path), "n0", "n1", SPAN)
    assert [each.name for each in answer.differences] == ["release", "image"]
    assert answer.differences[0].values_a == (("6.6-rc1", 1.0),)
    # One node of ten against nine: 2 x 1 x 9 of 10 x 9 ordered pairs.
    assert answer.differences[0].rarity == pytest.approx(0.2)
    assert answer.same == 1
    assert sum(answer.left_out.values()) == 1


def test_with_all_also_what_tells_single_nodes_apart(tmp_path: Path) -> None:
    answer = diff(drawn_fleet(tmp_path), "n0", "n2", SPAN, with_all=True)
    assert {each.name for each in answer.differences} == {"release", "instance_id"}


def test_of_groups_the_difference_that_chance_would_hardly_make_comes_first(tmp_path: Path) -> None:
    questions = LakeQuestions(draw_story(tmp_path).write(), moment(10))
    answer = diff(questions, "event=nic_reset", "not event=nic_reset", SPAN)
    assert (answer.nodes_a + answer.nodes_b, answer.nodes) == (60, 60)
    # As of today: what the failures left behind is seen here, and only here.
    assert [each.name for each in answer.differences[:2]] == ["eth0 state", UNIT]
    places = [each.name for each in answer.differences if each.is_place]
    assert places == ["zone"]


def test_names_that_are_none_are_reported_with_those_that_are_like_it(tmp_path: Path) -> None:
    questions = drawn_fleet(tmp_path)
    with pytest.raises(UsageError) as found:
        diff(questions, "N", "n1", SPAN)
    assert "n0, n1" in found.value.hint
    with pytest.raises(UsageError, match="no node is chosen"):
        diff(questions, "image=x", "n1", SPAN)
    with pytest.raises(UsageError, match="no node has a label"):
        diff(questions, "rack=x", "n1", SPAN)
