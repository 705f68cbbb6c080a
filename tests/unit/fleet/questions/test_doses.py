"""Time at risk out of a lake: until the first hit of a boot, a reboot or a silence, and no longer."""

from pathlib import Path

import pytest
from tests.fleet_lakes import CLUSTER, DrawnLake, moment

from necroscope.fleet.ask import LakeQuestions
from necroscope.fleet.cohorts.dose import TimeAtRisk
from necroscope.fleet.gauge_series import DAY_S
from necroscope.fleet.questions.doses import read_time_at_risk
from necroscope.fleet.questions.occurrences import Subject, read_moments
from necroscope.model.span import Span

RESET = Subject("event", "nic_reset")


def at_risk(drawn: DrawnLake, span: Span | None = None) -> TimeAtRisk:
    questions = LakeQuestions(drawn.write(), moment(10))
    found = read_time_at_risk(
        questions,
        read_moments(questions, RESET, Span(moment(0), moment(10))),
        span or Span(moment(0), moment(10)),
        [(CLUSTER, "n0"), (CLUSTER, "n1")],
    )
    assert found is not None
    return found


def grows(drawn: DrawnLake, node: str, days: int, uptime: float = 0) -> None:
    for day in range(days + 1):
        drawn.gauge(node, "uptime_s", (uptime + day) * DAY_S, day)
        drawn.gauge(node, "dead_cgroups", 100 * (uptime + day), day)


def test_a_node_that_is_not_hit_is_at_risk_for_all_of_its_time(tmp_path: Path) -> None:
    drawn = DrawnLake(tmp_path)
    grows(drawn, "n0", 10)
    risk = at_risk(drawn)
    assert risk.days.sum() == pytest.approx(10, abs=0.05)
    assert risk.at_hit.shape == (2, 0)


def test_after_its_first_hit_a_boot_is_not_at_risk_any_more(tmp_path: Path) -> None:
    drawn = DrawnLake(tmp_path)
    grows(drawn, "n0", 10)
    for day in (4.5, 6, 7):
        drawn.event("n0", "nic_reset", day)
    risk = at_risk(drawn)
    assert risk.days.sum() == pytest.approx(4.5, abs=0.05)
    assert dict(zip(risk.names, risk.at_hit[:, 0].tolist(), strict=True)) == pytest.approx(
        {"uptime_s": 4.5 * DAY_S, "dead_cgroups": 450}
    )


def test_a_reboot_puts_the_node_at_risk_again(tmp_path: Path) -> None:
    drawn = DrawnLake(tmp_path)
    grows(drawn, "n0", 5)
    drawn.event("n0", "nic_reset", 3)
    for day in range(6, 10):
        drawn.gauge("n0", "uptime_s", (day - 5.5) * DAY_S, day)
    drawn.event("n0", "nic_reset", 8.5)
    risk = at_risk(drawn)
    assert risk.days.sum() == pytest.approx(3 + 2.5, abs=0.1)
    assert risk.at_hit[risk.names.index("uptime_s")] == pytest.approx([3 * DAY_S, 3 * DAY_S])


def test_a_silent_node_is_not_at_risk_as_far_as_anybody_knows(tmp_path: Path) -> None:
    drawn = DrawnLake(tmp_path)
    grows(drawn, "n0", 3)
    assert at_risk(drawn).days.sum() == pytest.approx(4, abs=0.05)


def test_a_boot_that_was_hit_before_the_time_asked_about_tells_nothing(tmp_path: Path) -> None:
    drawn = DrawnLake(tmp_path)
    grows(drawn, "n0", 10)
    drawn.event("n0", "nic_reset", 4.5)
    risk = at_risk(drawn, Span(moment(5), moment(10)))
    assert risk.days.size == 0
    assert risk.at_hit.shape[1] == 0


def test_without_numbers_there_is_nothing_to_weigh(tmp_path: Path) -> None:
    drawn = DrawnLake(tmp_path)
    drawn.event("n0", "nic_reset", 4)
    questions = LakeQuestions(drawn.write(), moment(10))
    span = Span(moment(0), moment(10))
    hits = {(CLUSTER, "n0"): [moment(4)]}
    assert read_time_at_risk(questions, hits, span, [(CLUSTER, "n0")]) is None
