"""What a node's numbers were at a moment: lines within a boot, nothing across reboots and
silences.
"""

from pathlib import Path

import numpy as np
import pytest
from tests.fleet_lakes import CLUSTER, DrawnLake, moment

from necroscope.fleet.gauge_series import DAY_S, GaugeSeries, read_gauge_series
from necroscope.model.span import Span

SPAN = Span(moment(0), moment(10))


def read(drawn: DrawnLake, *nodes: str) -> GaugeSeries:
    series = read_gauge_series(drawn.write(), [(CLUSTER, node) for node in nodes], SPAN)
    assert series is not None
    return series


def dead_at(series: GaugeSeries, day: float, node: int = 0) -> float:
    time_s = series.seconds([moment(day)])
    boot = series.boot_at(np.array([node]), time_s)
    return float(series.at("dead_cgroups", boot, time_s)[0]) if boot[0] >= 0 else float("nan")


@pytest.fixture
def rebooted(tmp_path: Path) -> DrawnLake:
    """Up for a day already; rebooted at day 4."""
    drawn = DrawnLake(tmp_path)
    for day, uptime, dead in (
        (0, 1, 100),
        (1, 2, 200),
        (2, 3, 400),
        (4.5, 0.5, 10),
        (5.5, 1.5, 30),
    ):
        drawn.gauge("n0", "uptime_s", uptime * DAY_S, day)
        drawn.gauge("n0", "dead_cgroups", dead, day)
    return drawn


def test_between_two_rows_it_is_a_line_and_after_the_last_the_last(rebooted: DrawnLake) -> None:
    series = read(rebooted, "n0")
    assert dead_at(series, 1.5) == pytest.approx(300)
    assert dead_at(series, 6) == 30
    assert np.isnan(dead_at(series, 7.5))


def test_no_line_leads_from_one_boot_to_the_next(rebooted: DrawnLake) -> None:
    series = read(rebooted, "n0")
    assert dead_at(series, 3.4) == 400
    assert np.isnan(dead_at(series, 4.2))
    assert dead_at(series, 5) == pytest.approx(20)


def test_uptime_is_known_to_the_second_at_any_moment_of_a_boot(rebooted: DrawnLake) -> None:
    series = read(rebooted, "n0")
    time_s = series.seconds([moment(1.25), moment(4.25)])
    boot = series.boot_at(np.array([0, 0]), time_s)
    assert series.at("uptime_s", boot, time_s) == pytest.approx([2.25 * DAY_S, 0.25 * DAY_S])


def test_a_silence_of_days_is_not_bridged(tmp_path: Path) -> None:
    drawn = DrawnLake(tmp_path)
    for day, dead in ((1, 100), (5, 500)):
        drawn.gauge("n0", "dead_cgroups", dead, day)
    series = read(drawn, "n0")
    assert dead_at(series, 2) == 100
    assert np.isnan(dead_at(series, 3))


def test_nodes_are_not_mixed_and_others_are_passed_over(tmp_path: Path) -> None:
    drawn = DrawnLake(tmp_path)
    for node, dead in (("n0", 1), ("n1", 1_000), ("other", 5)):
        for day in (1, 2):
            drawn.gauge(node, "dead_cgroups", dead * day, day)
    drawn.gauge("n1", "uptime_s", 3 * DAY_S, 1)
    series = read(drawn, "n0", "n1")
    assert [dead_at(series, 1.5, node) for node in (0, 1)] == pytest.approx([1.5, 1_500])
    assert set(series.node_of_boot.tolist()) == {0, 1}
    assert np.isnan(dead_at(series, 0.5))


def test_rows_that_were_stored_twice_and_values_that_are_none_do_no_harm(tmp_path: Path) -> None:
    drawn = DrawnLake(tmp_path)
    for writer in ("w1", "w2"):
        for day, dead in ((1, 100.0), (2, 200.0), (1.5, float("inf")), (1.6, float("nan"))):
            drawn.gauge("n0", "dead_cgroups", dead, day)
        drawn.write(writer)
    series = read_gauge_series(drawn.lake, [(CLUSTER, "n0")], SPAN)
    assert series is not None
    assert dead_at(series, 1.5) == pytest.approx(150)


def test_a_lake_without_numbers_has_none(tmp_path: Path) -> None:
    drawn = DrawnLake(tmp_path)
    drawn.alive("n0", range(3))
    assert read_gauge_series(drawn.write(), [(CLUSTER, "n0")], SPAN) is None
