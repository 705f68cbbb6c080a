"""Intervals against published values."""

import math

import pytest

from necroscope.fleet.cohorts.intervals import (
    beta_cdf,
    beta_quantile,
    burst_size,
    chance_of_few,
    ratio_interval,
)


def test_the_incomplete_beta_function_has_its_known_values() -> None:
    assert beta_cdf(0.5, 2, 2) == pytest.approx(0.5)
    assert beta_cdf(0.3, 1, 1) == pytest.approx(0.3)
    assert beta_cdf(0.2, 3, 5) == pytest.approx(
        sum(math.comb(7, k) * 0.2**k * 0.8 ** (7 - k) for k in range(3, 8))
    )
    assert beta_cdf(0.9, 400.5, 30.25) == pytest.approx(1 - beta_cdf(0.1, 30.25, 400.5))


def test_a_quantile_is_where_the_function_says() -> None:
    assert beta_cdf(beta_quantile(0.975, 1, 63), 1, 63) == pytest.approx(0.975)


def test_no_event_after_sixty_three_expected_leaves_at_most_six_percent() -> None:
    low, high = ratio_interval(0, 63, 7, 7)
    assert low == 0
    # The share of none of 63 is below 1 - 0.025 ** (1 / 63).
    share = 1 - 0.025 ** (1 / 63)
    assert high == pytest.approx(share / (1 - share))
    assert chance_of_few(0, 63, 7, 7) == pytest.approx(0.5**63, rel=1e-3)


def test_without_anything_before_nothing_bounds_the_ratio() -> None:
    assert ratio_interval(3, 0, 1, 1).high == math.inf


def test_bursts_are_seen_and_single_events_are_not() -> None:
    assert burst_size([1, 0, 1, 0, 1, 1], [1.0] * 6) == 1.0
    assert burst_size([12, 0, 0, 0, 0, 0], [1.0] * 6) > 5
    assert burst_size([0, 0], [1.0, 1.0]) == 1.0
