"""A trial judged out of a lake: who could have been hit, and the story's unit disabled by lot."""

from pathlib import Path

import pytest
from benchmarks.generated_story import CLUSTER as STORY_CLUSTER
from benchmarks.generated_story import DAY_NS, START_NS, Story
from tests.fleet_lakes import CLUSTER, DrawnLake, moment

from necroscope.errors import UsageError
from necroscope.fleet.ask import LakeQuestions
from necroscope.fleet.lake import Lake
from necroscope.fleet.questions.occurrences import Subject
from necroscope.fleet.questions.trial import parse_nodes, trial

RESET = Subject("event", "nic_reset")


def judge(story: Story, path: Path) -> dict[str, object]:
    lake = Lake.open(str(path))
    story.write(lake)
    begin, end = START_NS + int(8 * DAY_NS), START_NS + story.days * DAY_NS
    treated = {(STORY_CLUSTER, node): begin for node in story.treated}
    untreated = {(STORY_CLUSTER, node): begin for node in story.carriers - story.treated}
    return trial(LakeQuestions(lake, end), RESET, treated, untreated, end).as_json()


def test_disabling_the_unit_of_the_story_is_proven_to_help(tmp_path: Path) -> None:
    found = judge(Story(nodes=90, days=24, treated_day=8), tmp_path)
    assert found["finding"] == "it helps"
    assert found["hits_treated"] == 0
    assert str(found["summary"]).startswith("it helps: 0 of ")


@pytest.mark.parametrize("seed", [6, 7, 8])
def test_a_treatment_that_does_nothing_is_not_said_to_help(tmp_path: Path, seed: int) -> None:
    found = judge(Story(nodes=60, days=20, treated_day=8, helps=False, seed=seed), tmp_path)
    assert found["finding"] != "it helps"


def test_only_who_takes_part_and_is_heard_of_could_have_been_hit(tmp_path: Path) -> None:
    drawn = DrawnLake(tmp_path)
    for number in range(10):
        drawn.alive(f"n{number}", range(3) if number == 9 else range(10))
    drawn.event("n0", "nic_reset", 1.5)  # before it takes part
    for node, day in (("n1", 4.5), ("n1", 5.5), ("n0", 6.5), ("other", 4)):
        drawn.event(node, "nic_reset", day)
    treated = {(CLUSTER, f"n{number}"): moment(2) for number in range(0, 10, 2)}
    untreated = {(CLUSTER, f"n{number}"): moment(2) for number in range(1, 10, 2)}
    answer = trial(LakeQuestions(drawn.write(), moment(10)), RESET, treated, untreated, moment(10))
    assert (answer.result.hits_treated, answer.result.hits_untreated) == (1, 1)
    assert answer.as_json()["finding"] == "not known yet"
    with pytest.raises(UsageError, match="needs treated and untreated"):
        trial(LakeQuestions(drawn.lake, moment(10)), RESET, {}, untreated, moment(10))


@pytest.mark.parametrize("text", ["n0", "eu-1/n0", "eu-1/n0@x", "a/b/c@1", "eu-1/n0@1;x"])
def test_what_names_no_node_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a node of a trial"):
        parse_nodes(text)
