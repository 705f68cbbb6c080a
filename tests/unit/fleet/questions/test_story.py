"""The story of the zone, replayed as a generated fleet in which zone and unit are the same nodes."""

from pathlib import Path

import pytest
from benchmarks.generated_story import DAY_NS, HOURS_A_ROW, IMAGE, START_NS, STEP, UNIT, Story
from tests.fleet_lakes import draw_story, moment

from necroscope.fleet.ask import LakeQuestions
from necroscope.fleet.lake import Lake
from necroscope.fleet.questions.change import change
from necroscope.fleet.questions.fact_changes import FactState
from necroscope.fleet.questions.next_nodes import needed_units, next_nodes
from necroscope.fleet.questions.occurrences import Subject
from necroscope.fleet.questions.why import why
from necroscope.model.span import Span
from necroscope.views.fleet.answers import change_to_text
from necroscope.views.fleet.next import next_to_text
from necroscope.views.fleet.why import why_to_text

RESET = Subject("event", "nic_reset")
NODES, DAYS = 60, 20
STORY = Story(nodes=NODES, days=DAYS)
SPAN = Span(START_NS, START_NS + DAYS * DAY_NS)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    found = Lake.open(str(tmp_path_factory.mktemp("story")))
    STORY.write(found)
    return found


def test_the_unit_its_image_and_the_threshold_are_reported(lake: Lake) -> None:
    answer = why(LakeQuestions(lake, SPAN.to_ns), RESET, SPAN).as_json()
    assert (answer["outcome"], answer["decided_by"]) == ("separated", "mechanism")
    assert answer["leaders"][0]["name"] == f"unit_outcome {UNIT} is crash-loop"
    assert IMAGE in [each["name"] for each in answer["leaders"][0]["facts"]]
    assert IMAGE in answer["summary"]
    first = answer["doses"][0]
    assert first["name"] == "dead_cgroups"
    assert first["threshold"] == pytest.approx(58_000, rel=0.15)
    uptime = next(each for each in answer["doses"] if each["name"] == "uptime_s")
    assert uptime["relation"] == "explained by the first"
    assert "the number of dead cgroups explains the uptime" in answer["dose_summary"]
    assert answer["rates"]["with"]["per_node_day"] > 20 * answer["rates"]["without"]["per_node_day"]
    assert "how much it takes" in why_to_text(answer)


def test_where_uptime_itself_matters_the_count_does_not_take_its_place(tmp_path: Path) -> None:
    lake = Lake.open(str(tmp_path))
    Story(nodes=NODES, days=DAYS, by_uptime=True, threshold=6.1, seed=2).write(lake)
    answer = why(LakeQuestions(lake, SPAN.to_ns), RESET, SPAN).as_json()
    assert answer["doses"][0]["name"] == "uptime_s"
    assert answer["doses"][0]["threshold"] == pytest.approx(6.1 * 86_400, rel=0.15)


def test_who_is_next_and_where_a_repair_would_spread_it(lake: Lake) -> None:
    answer = next_nodes(LakeQuestions(lake, SPAN.to_ns), RESET, SPAN).as_json()
    assert answer["carrier"] == f"unit_outcome {UNIT} is crash-loop"
    assert answer["carrier_count"] == len(STORY.carriers)
    for carrier in answer["carriers"]:
        node = carrier["node"]
        if STORY.uptime_days[node] <= HOURS_A_ROW / 24:
            continue  # booted after its last row
        assert carrier["size"] == pytest.approx(STORY.dead[node], rel=0.15, abs=4_000)
        if carrier["days"]:
            truth = (58_000 - STORY.dead[node]) / STORY.leaks[node]
            assert carrier["days"] == pytest.approx(truth, rel=0.3, abs=0.6)
            assert carrier["days_low"] <= carrier["days"] <= carrier["days_high"]
    open_still = [each for each in answer["carriers"] if not each["is_hit"]]
    days = [each["days"] for each in open_still if each["days"] is not None]
    assert len(days) >= len(open_still) - 2  # just booted: nothing tells how fast it grows
    assert days == sorted(days)
    assert answer["waiting_count"] == NODES - len(STORY.carriers)
    assert answer["waiting"][0]["held_back_by"] == [{"unit": STEP, "outcome": "failed"}]
    assert f"A repair of {STEP} starts {UNIT} there: disable it first" in answer["summary"]
    assert "days left" in next_to_text(answer)


def test_where_nothing_can_be_named_nobody_is_said_to_be_next(tmp_path: Path) -> None:
    lake = draw_story(tmp_path, disagree=0).write()
    answer = next_nodes(LakeQuestions(lake, moment(10)), RESET, Span(moment(0), moment(10)))
    found = answer.as_json()
    assert found["carriers"] == []
    assert found["summary"].startswith("who is next cannot be said: cannot separate")
    assert next_to_text(found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Requires=a.service; After=b.service a.service", ["a.service", "b.service"]),
        ("WantedBy=multi-user.target", []),
        ("After=", []),
        ("", []),
        ("; ;=x", []),
    ],
)
def test_what_a_unit_needs_is_read_from_its_fact(text: str, expected: list[str]) -> None:
    assert needed_units(text) == expected


def test_disabling_it_is_followed_by_fewer_resets_and_no_more_dead_cgroups(tmp_path: Path) -> None:
    lake = Lake.open(str(tmp_path))
    story = Story(nodes=NODES, days=DAYS, treated_day=8).write(lake)
    state = FactState("unit_file", UNIT, "disabled")
    answer = change(LakeQuestions(lake, SPAN.to_ns), state, RESET, SPAN).as_json()
    changed = answer["changed"]
    assert changed["nodes"] == len(story.treated)
    assert changed["after"]["times"] == 0
    assert changed["ratio_high"] < 0.5
    dead = next(each for each in answer["gauges"] if each["name"] == "dead_cgroups")
    assert dead["before"]["size"] > 10_000
    assert dead["before"]["per_day"] == pytest.approx(9_500, rel=0.4)
    assert dead["after"]["size"] < 100
    assert abs(dead["after"]["per_day"]) < 50
    assert "dead cgroups, median of the nodes" in change_to_text(answer)
    assert not [each for each in answer["gauges"] if each["name"] == "uptime_s"]


def test_a_change_in_a_fleet_that_pushes_no_numbers_has_none(tmp_path: Path) -> None:
    lake = draw_story(tmp_path).write()
    state = FactState("nic", "eth0 state", "was reset")
    span = Span(moment(0), moment(10))
    assert change(LakeQuestions(lake, span.to_ns), state, RESET, span).gauges == ()
