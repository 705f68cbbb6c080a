"""The flame graph of a group of nodes."""

import io
from pathlib import Path

import pytest
from tests.fleet_lakes import DrawnLake, draw_story, moment

from necroscope.errors import NecroscopeError, UsageError
from necroscope.fleet.ask import LakeQuestions
from necroscope.fleet.flame_files import trees, write_flame
from necroscope.fleet.questions.flame import flame
from necroscope.model.span import Span

SPAN = Span(moment(0), moment(10))


def written(answer: dict, form: str) -> str:
    out = io.BytesIO()
    write_flame(answer, form, out)
    return out.getvalue().decode()


def test_stacks_of_the_chosen_nodes_are_summed(tmp_path: Path) -> None:
    questions = LakeQuestions(draw_story(tmp_path).write(), moment(10))
    answer = flame(questions, SPAN, "unit_outcome:ecs-agent.service=crash-loop").as_json()
    assert (
        written(answer, "folded") == f"kubelet;entry;read;mem_cgroup_walk {100 * answer['nodes']}\n"
    )
    assert "mem_cgroup_walk" in written(answer, "text")


def test_affected_against_unaffected_nodes_shows_what_is_new(tmp_path: Path) -> None:
    questions = LakeQuestions(draw_story(tmp_path).write(), moment(10))
    answer = flame(questions, SPAN, "event=nic_reset", "not event=nic_reset").as_json()
    assert answer["nodes"] + answer["baseline_nodes"] == 60
    assert "copy" in written(answer, "text")
    for form, mark in (("svg", "<svg"), ("html", "<!doctype html>")):
        assert mark in written(answer, form).lower()
    with pytest.raises(UsageError, match="cannot show a comparison"):
        written(answer, "folded")


def test_nodes_that_sample_at_other_rates_weigh_by_time(tmp_path: Path) -> None:
    drawn = DrawnLake(tmp_path)
    for node, samples, period_ns in (("fast", 1000, 1_000_000), ("slow", 100, 10_000_000)):
        drawn.alive(node, range(10))
        drawn.stack(node, f"only_{node}", samples, 9, period_ns=period_ns)
    answer = flame(LakeQuestions(drawn.write(), moment(10)), SPAN)
    assert {(stack.path, stack.samples) for stack in answer.stacks} == {
        ("only_fast", 100),
        ("only_slow", 100),
    }


def test_rows_that_are_stored_twice_count_once_and_a_minute_in_two_parts_counts_whole(
    tmp_path: Path,
) -> None:
    drawn = DrawnLake(tmp_path)
    drawn.alive("n", range(10))
    for writer in ("w1", "w2"):
        drawn.stack("n", "a;b", 70, 9)
        drawn.write(writer)
    drawn.stack("n", "a;b", 30, 9)
    drawn.stack("n", "a;c", 5, 9)
    drawn.write("w3")
    answer = flame(LakeQuestions(drawn.lake, moment(10)), SPAN)
    assert {(stack.path, stack.samples) for stack in answer.stacks} == {("a;b", 100), ("a;c", 5)}


def test_what_the_nodes_left_out_is_reported_and_stands_alone(tmp_path: Path) -> None:
    drawn = DrawnLake(tmp_path)
    drawn.alive("n", range(10))
    drawn.stack("n", "a;b", 75, 9)
    drawn.stack("n", "(left out)", 25, 9, comm="")
    answer = flame(LakeQuestions(drawn.write(), moment(10)), SPAN).as_json()
    assert "25.0% of the samples" in answer["left_out"][0]
    tree, baseline = trees(answer)
    assert baseline is None
    assert tree.samples == 100
    assert {tree.frames[frame].function for frame in tree.frame[tree.parent < 0]} == {
        "kubelet",
        "(left out)",
    }


def test_hostile_names_do_not_break_out_of_a_picture(tmp_path: Path) -> None:
    drawn = DrawnLake(tmp_path)
    drawn.alive("n", range(10))
    drawn.stack("n", "</script><script>alert(1)</script>;\x1b[31mred", 75, 9)
    answer = flame(LakeQuestions(drawn.write(), moment(10)), SPAN).as_json()
    for form in ("svg", "html"):
        assert "<script>alert(1)" not in written(answer, form)
    assert "\x1b" not in written(answer, "text")


def test_nothing_sampled_is_reported_with_what_there_is(tmp_path: Path) -> None:
    questions = LakeQuestions(draw_story(tmp_path).write(), moment(10))
    with pytest.raises(UsageError) as found:
        flame(questions, Span(moment(1), moment(2)))
    assert "2026-04-10" in found.value.hint
    with pytest.raises(UsageError, match="no node is chosen"):
        flame(questions, SPAN, "zone=q")


def test_a_flame_graph_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    questions = LakeQuestions(draw_story(tmp_path).write(), moment(10), longest_s=0.0)
    with pytest.raises(NecroscopeError, match="took longer than 0 s"):
        flame(questions, SPAN)


def test_of_a_large_fleet_the_end_of_the_time_is_added_up_and_nodes_are_chosen_in_all_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = DrawnLake(tmp_path)
    drawn.alive("n", range(10))
    drawn.event("n", "nic_reset", 2)
    for day in (1, 9.3, 9.999):
        drawn.stack("n", f"day_{day}", 70, day)
    questions = LakeQuestions(drawn.write(), moment(10))
    monkeypatch.setattr("necroscope.fleet.questions.flame.most_rows", lambda: 2)
    answer = flame(questions, SPAN, "event=nic_reset").as_json()
    assert [stack[1] for stack in answer["stacks"]] == ["day_9.999"]
    assert answer["left_out"] == [
        "all before the last 6 h: 10 d of the fleet are too much to add up"
    ]
    assert (answer["from"], answer["to"]) == (
        "2026-04-10T18:00:00.000Z",
        "2026-04-11T00:00:00.000Z",
    )
