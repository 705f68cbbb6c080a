"""What a moved incident tells is what the analysis tells of the moved recording."""

import json
from pathlib import Path

from tests.fleet_evidence import MINUTE_NS, the_story

from necroscope.fleet.generated.story import moved_row
from necroscope.outlets.push.minute_stacks import LEFT_OUT
from necroscope.outlets.push.window_analysis import analyse

BY_NS = 4321 * MINUTE_NS


def test_the_verdict_is_real_and_the_reset_is_said_to_be_generated() -> None:
    story = the_story()
    (incident,) = story.incidents
    assert incident["cause"] == "zombie-memcg-walk"
    assert incident["confidence"] >= 0.8
    (event,) = json.loads(incident["report"])["events"]
    assert (event["kind"], event["core"]) == ("nic_reset", 1)
    assert event["message"].startswith("generated: ")


def test_a_moved_row_is_what_the_analysis_says_of_the_moved_recording(tmp_path: Path) -> None:
    story = the_story()
    window = story.window[0] + BY_NS, story.window[1] + BY_NS
    found = analyse(
        story.moved_store(BY_NS, "vm"), window, 0, is_final=False, now_ns=window[1], work=tmp_path
    )
    assert found.incidents == [moved_row(row, BY_NS) | {"bundle": None} for row in story.incidents]


def test_minutes_hold_the_heaviest_stacks_and_say_what_was_left_out() -> None:
    for minutes in (the_story().quiet, the_story().hit):
        stacks = minutes["stack_minutes"]
        times = stacks["time"]
        assert max(times.count(time_ns) for time_ns in times) <= 51
        assert stacks["path"].count(LEFT_OUT) == len(set(times))
        assert minutes["core_minutes"]["time"]


def test_the_walk_is_in_the_minutes_of_the_incident_only() -> None:
    story = the_story()
    assert any("mem_cgroup_iter" in path for path in story.hit["stack_minutes"]["path"])
    assert not any("mem_cgroup_iter" in path for path in story.quiet["stack_minutes"]["path"])
