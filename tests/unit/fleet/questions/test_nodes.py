"""Who is there."""

from pathlib import Path

import pytest
from tests.fleet_lakes import DAY_NS, DrawnLake, moment

from necroscope.fleet.ask import LakeQuestions
from necroscope.fleet.questions.nodes import nodes
from necroscope.fleet.questions.presence import read_presence
from necroscope.model.span import Span
from necroscope.model.units import format_moment
from necroscope.views.fleet.answers import nodes_to_text


def drawn_fleet(path: Path) -> LakeQuestions:
    drawn = DrawnLake(path)
    drawn.alive("busy", range(10))
    drawn.alive("calm", range(10))
    drawn.alive("gone", range(3))
    for node, zone in (("busy", "a"), ("calm", "b"), ("gone", "b")):
        drawn.fact(node, "label", "zone", zone)
    for day in (4, 5):
        drawn.event("busy", "nic_reset", day)
    drawn.event("busy", "oom_kill", 5)
    drawn.incident("busy", "i1", "vm-steal", 4)
    drawn.incident("busy", "i2", "rt-hog", 5)
    return LakeQuestions(drawn.write(), moment(10))


def test_the_busiest_node_comes_first_with_all_that_is_known(tmp_path: Path) -> None:
    answer = nodes(drawn_fleet(tmp_path), Span(moment(0), moment(9.995)))
    first = answer.as_json()["nodes"][0]
    assert (first["node"], first["labels"], first["events"]) == (
        "busy",
        {"zone": "a"},
        {"nic_reset": 2, "oom_kill": 1},
    )
    assert (first["incidents"], first["last_cause"], first["cpus"]) == (2, "rt-hog", 96)
    assert {each.key[1]: each.is_silent for each in answer.nodes} == {
        "busy": False,
        "calm": False,
        "gone": True,
    }


def test_nodes_are_chosen_by_labels_and_by_what_happened(tmp_path: Path) -> None:
    questions = drawn_fleet(tmp_path)
    span = Span(moment(0), moment(10))
    assert [each.key[1] for each in nodes(questions, span, "zone=b").nodes] == ["calm", "gone"]
    assert [each.key[1] for each in nodes(questions, span, "event=nic_* and zone=a").nodes] == [
        "busy"
    ]
    assert [each.key[1] for each in nodes(questions, span, "cause=vm-steal or node=c*").nodes] == [
        "busy",
        "calm",
    ]
    assert [
        each.key[1] for each in nodes(questions, span, "cluster=eu-1 and not node=busy").nodes
    ] == ["calm", "gone"]


def test_a_node_is_observed_on_the_days_it_was_heard_of(tmp_path: Path) -> None:
    presence = read_presence(drawn_fleet(tmp_path), Span(moment(1), moment(9.5)))
    day_ns = moment(1) - moment(0)
    assert presence.observed_ns(("eu-1", "gone"), Span(moment(0), moment(9))) == 2 * day_ns
    # The last pulse of day 9 comes after the span's end.
    assert presence.observed_ns(("eu-1", "calm"), Span(moment(1.5), moment(9.5))) == 7.5 * day_ns
    assert ("eu-1", "gone") not in read_presence(
        drawn_fleet(tmp_path), Span(moment(5), moment(9))
    ).nodes()


@pytest.mark.parametrize(
    ("days_ahead", "text"), [(1, "clock off by 1 d (ahead)"), (-1, "clock off by 1 d (behind)")]
)
def test_a_node_whose_clock_is_a_day_off_is_listed_and_told(
    tmp_path: Path, days_ahead: int, text: str
) -> None:
    drawn = DrawnLake(tmp_path)
    drawn.alive("right", range(10))
    own_ns = moment(9.999) + days_ahead * DAY_NS
    drawn.add(
        "pulses",
        "off",
        own_ns,
        clock_offset_ns=-days_ahead * DAY_NS,
        span_from=own_ns,
        span_to=own_ns,
    )
    drawn.add("facts", "off", own_ns, kind="label", name="zone", value="a")
    questions = LakeQuestions(drawn.write(), moment(10))
    hour = Span(moment(10) - DAY_NS // 24, moment(10))
    assert [each.key[1] for each in nodes(questions, hour).nodes] == ["off", "right"]
    answer = nodes(questions, hour, "zone=a").as_json()
    (node,) = answer["nodes"]
    assert (node["node"], node["is_silent"], node["last_seen"]) == (
        "off",
        False,
        format_moment(moment(9.999)),
    )
    assert (answer["clocks_off"], answer["silent"]) == (1, 0)
    assert text in nodes_to_text(answer)
    assert "1 nodes, 1 with a clock that is off" in nodes_to_text(answer)


def test_a_node_whose_clock_was_set_right_is_as_it_was_heard_last(tmp_path: Path) -> None:
    drawn = DrawnLake(tmp_path)
    for heard, ahead_ns in ((9.5, DAY_NS), (9.999, 0)):
        own_ns = moment(heard) + ahead_ns
        drawn.add(
            "pulses", "set", own_ns, clock_offset_ns=-ahead_ns, span_from=own_ns, span_to=own_ns
        )
    (node,) = nodes(LakeQuestions(drawn.write(), moment(10)), Span(moment(9), moment(10))).nodes
    assert (node.is_clock_off, node.last_ns) == (False, moment(9.999))
