"""Events over time by a label."""

from pathlib import Path

from tests.fleet_lakes import draw_story, moment

from necroscope.fleet.ask import LakeQuestions
from necroscope.fleet.questions.occurrences import Subject
from necroscope.fleet.questions.timeline import timeline
from necroscope.model.span import Span

RESET = Subject("event", "nic_reset")


def test_the_zone_with_most_resets_comes_first_and_all_are_counted(tmp_path: Path) -> None:
    questions = LakeQuestions(draw_story(tmp_path).write(), moment(10))
    answer = timeline(questions, RESET, "zone", Span(moment(0), moment(10)))
    assert answer.series[0].value == "a"
    assert {each.value for each in answer.series} == {"a", "b", "c"}
    assert sum(sum(each.times) for each in answer.series) == 72
    assert [each.nodes for each in answer.series] == [20, 20, 20]
    assert all(len(each.times) == len(answer.starts_ns) for each in answer.series)


def test_nodes_without_the_label_are_a_series_of_their_own(tmp_path: Path) -> None:
    questions = LakeQuestions(draw_story(tmp_path).write(), moment(10))
    assert [
        each.value
        for each in timeline(questions, RESET, "rack", Span(moment(0), moment(10))).series
    ] == [None]


def test_more_values_than_a_picture_has_room_for_are_summed_up(tmp_path: Path) -> None:
    questions = LakeQuestions(draw_story(tmp_path).write(), moment(10))
    answer = timeline(questions, RESET, "node", Span(moment(0), moment(10)))
    assert len(answer.series) == 12
    assert answer.series[-1].value == "(others)"
    assert sum(sum(each.times) for each in answer.series) == 72
