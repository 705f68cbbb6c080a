"""The story of the zone, replayed as a generated fleet in which zone and unit are the same nodes."""

from pathlib import Path

import pytest
from benchmarks.generated_story import DAY_NS, IMAGE, START_NS, UNIT, Story

from necroscope.fleet.ask import LakeQuestions
from necroscope.fleet.lake import Lake
from necroscope.fleet.questions.occurrences import Subject
from necroscope.fleet.questions.why import why
from necroscope.model.span import Span
from necroscope.views.fleet.why import why_to_text

RESET = Subject("event", "nic_reset")
NODES, DAYS = 60, 20
SPAN = Span(START_NS, START_NS + DAYS * DAY_NS)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    found = Lake.open(str(tmp_path_factory.mktemp("story")))
    Story(nodes=NODES, days=DAYS).write(found)
    return found


def test_the_unit_its_image_and_the_threshold_are_told(lake: Lake) -> None:
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
