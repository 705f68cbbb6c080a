"""The figures of a score."""

from typing import Any

import pytest

from necroscope.analysis.interval import wilson
from necroscope.lab.score.guess import LEVELS, Guess
from necroscope.lab.score.metrics import ScoredRecording, accuracy, calibration, score

CAUSE = LEVELS[1]


def outcome(
    truth: str | None,
    *said: tuple[str, float],
    seconds: float = 1.0,
    tolerates: tuple[str, ...] = (),
) -> ScoredRecording:
    label: dict[str, Any] = {
        "cause": truth,
        "core": 0,
        "mode": "user",
        "culprit": None,
        "origin": None,
        "tolerates": list(tolerates),
    }
    return ScoredRecording(label, [Guess(0, "user", cause, sure) for cause, sure in said], seconds)


def test_every_cause_weighs_the_same_in_the_macro_mean() -> None:
    runs = [outcome("a", ("a", 0.9))] * 9 + [outcome("b", ("a", 0.9))]
    found = accuracy(CAUSE, runs)
    assert (found.first.hits, found.first.of) == (9, 10)
    assert found.macro_first == pytest.approx(0.5)


def test_the_third_place_counts_and_the_fourth_does_not() -> None:
    third = outcome("a", ("x", 0.9), ("y", 0.8), ("a", 0.7))
    fourth = outcome("a", ("x", 0.9), ("y", 0.8), ("z", 0.7), ("a", 0.6))
    found = accuracy(CAUSE, [third, fourth])
    assert (found.first.hits, found.first_three.hits) == (0, 1)


def test_saying_nothing_is_not_covered_and_naming_the_healthy_is_false() -> None:
    runs = [
        outcome("a", ("a", 0.9)),
        outcome("a"),
        outcome("a", ("a", 0.4)),
        outcome(None),
        outcome(None, ("a", 0.6)),
        outcome(None, ("a", 0.3)),
        outcome(None, ("a", 0.9), tolerates=("a",)),
    ]
    found = score(runs)
    assert (found.coverage.hits, found.coverage.of) == (1, 3)
    assert (found.false_namings.hits, found.false_namings.of) == (1, 4)


def test_who_was_not_asked_does_not_count_against_it() -> None:
    found = score([outcome("a", ("a", 0.9))])
    assert found.levels["culprit and origin"].first.of == 0
    assert found.levels["culprit and origin"].macro_first is None


def test_calibration_compares_what_was_said_with_what_was_right() -> None:
    runs = [
        outcome("a", ("a", 0.95)),
        outcome("a", ("b", 0.92)),
        outcome(None, ("a", 0.6)),
        outcome("a", ("a", 1.0)),
        outcome("a"),
    ]
    bins = {(each.low, each.high): each for each in calibration(runs)}
    assert (bins[0.9, 1.0].right.hits, bins[0.9, 1.0].right.of) == (2, 3)
    assert bins[0.9, 1.0].confidence == pytest.approx((0.95 + 0.92 + 1.0) / 3)
    assert (bins[0.5, 0.7].right.hits, bins[0.5, 0.7].right.of) == (0, 1)
    assert bins[0.0, 0.5].confidence is None


def test_the_bar_of_what_is_said_with_confidence_has_bins_of_its_own() -> None:
    bins = {
        each.low: each.right
        for each in calibration([outcome("a", ("a", 0.8)), outcome("a", ("b", 0.79))])
    }
    assert (bins[0.8].hits, bins[0.8].of) == (1, 1)
    assert (bins[0.7].hits, bins[0.7].of) == (0, 1)


def test_seconds_to_the_verdict() -> None:
    found = score([outcome("a", seconds=1), outcome("a", seconds=2), outcome(None, seconds=9)])
    assert (found.median_s, found.longest_s) == (2, 9)


@pytest.mark.parametrize(
    ("hits", "of", "low", "high"),
    # Newcombe 1998, Statistics in Medicine 17, table I, method 3.
    [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_agrees_with_the_published_intervals(
    hits: int, of: int, low: float, high: float
) -> None:
    assert wilson(hits, of) == (pytest.approx(low, abs=5e-5), pytest.approx(high, abs=5e-5))


def test_no_run_has_a_score_without_numbers() -> None:
    found = score([]).as_json()
    assert found["levels"]["cause"]["ac1"] == {
        "hits": 0,
        "of": 0,
        "value": None,
        "low": None,
        "high": None,
        "macro": None,
    }
    assert found["seconds"] == {"median": None, "longest": None}
