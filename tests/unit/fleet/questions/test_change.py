"""Did it help: before and after a change, with its interval."""

from pathlib import Path

import pytest
from tests.fleet_lakes import UNIT, DrawnLake, moment

from necroscope.errors import UsageError
from necroscope.fleet.ask import LakeQuestions
from necroscope.fleet.questions.change import ChangeAnswer, change
from necroscope.fleet.questions.fact_changes import FactState
from necroscope.fleet.questions.occurrences import Subject
from necroscope.model.span import Span

SPAN = Span(moment(0), moment(14))
RESET = Subject("event", "nic_reset")


def drawn_fleet(path: Path, *, helps: bool = True) -> DrawnLake:
    """Forty nodes with a reset on every other day; on twenty of them the unit is disabled on day 7,
    and 20 jobs fail before.
    """
    drawn = DrawnLake(path)
    for number in range(40):
        node, is_changed = f"n{number:02d}", number < 20
        drawn.alive(node, range(14))
        drawn.fact(node, "unit_file", UNIT, "enabled")
        if is_changed:
            drawn.fact(node, "unit_file", UNIT, "disabled", day=7)
        for day in range(number % 2, 14, 2):
            if not (is_changed and helps and day >= 7):
                drawn.event(node, "nic_reset", day + 0.5)
        drawn.job(node, "train.service", "failure", 3)
        drawn.job(node, "train.service", "success", 10)
        drawn.job(node, "ray-1", "success", 10, kind="ray_job")
    return drawn


def ask_change(
    drawn: DrawnLake, state: str = f"unit_file:{UNIT}=disabled", about: Subject | None = RESET
) -> ChangeAnswer:
    return change(LakeQuestions(drawn.write(), moment(14)), FactState.parse(state), about, SPAN)


def test_no_reset_after_the_change_is_reported_with_what_was_expected(tmp_path: Path) -> None:
    answer = ask_change(drawn_fleet(tmp_path))
    rates = answer.changed
    assert (rates.nodes, rates.times_before, rates.times_after) == (20, 70, 0)
    assert (rates.days_before, rates.days_after) == (140, 140)
    assert rates.expected == 70
    assert rates.interval is not None
    assert rates.interval.high < 0.06
    assert "0 nic_reset on 20 nodes in 140 node-days, expected 70" in answer.as_json()["summary"]


def test_nodes_that_did_not_change_tell_what_would_have_been_without(tmp_path: Path) -> None:
    others = ask_change(drawn_fleet(tmp_path)).others
    assert others is not None
    assert (others.nodes, others.times_before, others.times_after) == (20, 70, 70)


def test_a_change_that_did_nothing_has_one_within_its_interval(tmp_path: Path) -> None:
    interval = ask_change(drawn_fleet(tmp_path, helps=False)).changed.interval
    assert interval is not None
    assert interval.low < 1 < interval.high


def test_jobs_are_counted_before_and_after_on_nodes_that_changed(tmp_path: Path) -> None:
    jobs = {(each.kind, each.name): each for each in ask_change(drawn_fleet(tmp_path)).jobs}
    train = jobs["unit", "train.service"]
    assert (train.before.success, train.before.runs, train.after.success, train.after.runs) == (
        0,
        20,
        20,
        20,
    )
    assert train.chance < 1e-6
    assert jobs["ray_job", None].before.as_json()["rate"] is None


def test_events_in_bursts_widen_the_interval(tmp_path: Path) -> None:
    single = drawn_fleet(tmp_path / "single")
    bursts = DrawnLake(tmp_path / "bursts")
    for number in range(20):
        node = f"n{number:02d}"
        bursts.alive(node, range(14))
        bursts.fact(node, "unit_file", UNIT, "enabled")
        bursts.fact(node, "unit_file", UNIT, "disabled", day=7)
        if number < 2:
            for hour in range(35):
                bursts.event(node, "nic_reset", 3 + hour / 48)
    many, few = ask_change(bursts).changed, ask_change(single).changed
    assert many.times_before == few.times_before == 70
    assert many.interval is not None
    assert few.interval is not None
    assert many.interval.high > 5 * few.interval.high


def test_a_change_that_was_taken_back_counts_until_then(tmp_path: Path) -> None:
    drawn = drawn_fleet(tmp_path, helps=False)
    for number in range(20):
        drawn.fact(f"n{number:02d}", "unit_file", UNIT, "enabled", day=9)
    assert ask_change(drawn).changed.days_after == 40


def test_any_change_of_a_fact_can_be_asked_about_and_jobs_alone(tmp_path: Path) -> None:
    answer = ask_change(drawn_fleet(tmp_path), f"unit_file:{UNIT}", None)
    assert answer.changed.nodes == 20
    assert answer.as_json()["about"] is None


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("unit_file:no.service=x", "no node has pushed a fact"),
        (f"unit_file:{UNIT}=masked", "on no node"),
        ("=x", "is not a valid fact"),
    ],
)
def test_what_never_changed_is_reported(tmp_path: Path, state: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        ask_change(drawn_fleet(tmp_path), state)


def test_a_job_over_nodes_counts_by_where_it_ran_not_by_where_its_line_was(tmp_path: Path) -> None:
    """Its first rank, which writes the line, is on a node that never changed."""
    drawn = drawn_fleet(tmp_path)
    for number in range(6):
        for day, status in ((2 + number / 10, 256), (10 + number / 10, 0)):
            drawn.member("n30", f"slurm/{number}-{day}", 0, day, status=status)
            drawn.member(f"n{number:02d}", f"slurm/{number}-{day}", 1, day, status=status)
        drawn.member("n31", f"slurm/elsewhere-{number}", 0, 10, status=256)
    drawn.member("n00", "slurm/meanwhile", 0, 7.01, status=256, started_ns=-7200)
    jobs = {(each.kind, each.name): each for each in ask_change(drawn).jobs}
    torch = jobs["torch", None]
    assert (torch.before.success, torch.before.runs) == (0, 6)
    assert (torch.after.success, torch.after.runs) == (6, 6)
    assert torch.chance < 0.01
