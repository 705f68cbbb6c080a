"""Whether bursts come at a beat."""

import pytest

from necroscope.analysis.periodicity import describe_period, period_of_starts


def starts(*seconds: float) -> list[int]:
    return [round(second * 1e9) for second in seconds]


@pytest.mark.parametrize("period", [1.5, 10, 60, 300])
def test_a_steady_beat_is_found(period: float) -> None:
    jitter = (0.0, 0.03, -0.02, 0.04, 0.01, -0.03)
    found = period_of_starts(starts(*(period * (beat + off) for beat, off in enumerate(jitter))))
    assert found == pytest.approx(period, rel=0.03)


def test_a_missed_beat_does_not_break_it() -> None:
    assert period_of_starts(starts(0, 10, 20, 40, 50, 60)) == pytest.approx(10, rel=0.02)


def test_random_bursts_have_no_beat() -> None:
    assert period_of_starts(starts(0, 3, 21, 24, 60, 61, 95)) is None


def test_three_bursts_prove_nothing() -> None:
    assert period_of_starts(starts(0, 10, 20)) is None


def test_a_period_is_reported_in_its_own_unit() -> None:
    assert [describe_period(1.5), describe_period(10), describe_period(300)] == [
        "every 1.5 s",
        "every 10 s",
        "every 5 min",
    ]
