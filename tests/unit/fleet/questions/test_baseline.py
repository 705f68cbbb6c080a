"""What runs that no one asked for, and how often units succeed."""

from pathlib import Path

import pytest
from tests.fleet_lakes import DrawnLake, moment

from necroscope.errors import UsageError
from necroscope.fleet.ask import LakeQuestions
from necroscope.fleet.questions.baseline import BaselineAnswer, baseline
from necroscope.model.span import Span
from necroscope.views.fleet.baseline import baseline_to_text

SPAN = Span(moment(0), moment(10))


@pytest.fixture
def lake(tmp_path: Path) -> LakeQuestions:
    """Ten nodes: an agent that crashes on four and never starts on the others, a good daemon, and a
    job that fails now and then. A unit is named by somebody hostile.
    """
    drawn = DrawnLake(tmp_path)
    for number in range(10):
        node = f"n{number}"
        drawn.alive(node, [1, 2])
        for unit, preset, outcome in (
            ("agent.service", "enabled", "crash-loop" if number < 4 else "never-started"),
            ("good.service", "disabled", "succeeded"),
            ("job.service", "enabled", "failed" if number == 0 else "succeeded"),
        ):
            drawn.fact(node, "unit_file", unit, "enabled")
            drawn.fact(node, "unit_preset", unit, preset)
            drawn.fact(node, "unit_outcome", unit, outcome)
        drawn.fact(node, "image", "agent:1", "sha256:1") if number < 4 else None
        drawn.job(node, "job.service", "failure" if number < 3 else "success", 1.5)
        drawn.job(node, "agent.service", "failure", 1.5)
    drawn.fact("n0", "unit_outcome", "\x1b[31mevil*.service", "failed")
    return LakeQuestions(drawn.write(), moment(10))


def names(answer: BaselineAnswer) -> list[str]:
    return [each.name for each in answer.unasked]


def test_what_the_vendor_enables_was_asked_for_by_nobody(lake: LakeQuestions) -> None:
    answer = baseline(lake, SPAN)
    assert names(answer) == ["agent.service", "job.service"]
    assert answer.unasked[0].never_succeeds
    assert not answer.unasked[1].never_succeeds
    assert "enables it on 10 of 10 nodes" in answer.unasked[0].reason


def test_with_a_list_everything_else_was_asked_for_by_nobody(lake: LakeQuestions) -> None:
    wanted = "unit_outcome:good.service\nunit_outcome:job.*\n"
    found = names(baseline(lake, SPAN, expected=wanted))
    assert set(found) == {"agent.service", "agent:1", "\x1b[31mevil*.service"}
    assert not names(baseline(lake, SPAN, expected="*:*"))


def test_units_that_succeed_nowhere_come_first_and_rates_have_intervals(
    lake: LakeQuestions,
) -> None:
    answer = baseline(lake, SPAN).as_json()
    assert answer["never_succeed"] == ["agent.service", "\x1b[31mevil*.service"]
    job = next(each for each in answer["units"] if each["unit"] == "job.service")
    assert (job["success"], job["runs"]) == (7, 10)
    assert job["low"] < 0.7 < job["high"]
    assert job["outcomes"] == {"succeeded": 9, "failed": 1}
    assert "\x1b" not in baseline_to_text(answer)


def test_only_the_nodes_that_are_chosen_count(lake: LakeQuestions) -> None:
    answer = baseline(lake, SPAN, "node=n9")
    assert answer.nodes == 1
    assert answer.units[0].outcomes == {"never-started": 1}
    with pytest.raises(UsageError, match="no node is chosen"):
        baseline(lake, SPAN, "node=none")
