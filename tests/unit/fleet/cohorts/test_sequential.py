"""A test that may be looked at after every hit: how often it is right, and how often it cries
wolf.
"""

import numpy as np
import pytest

from necroscope.fleet.cohorts.sequential import TrialFinding, TrialHit, TrialResult, judge_trial


def drawn(rng: np.random.Generator, ratio: float, nodes: int) -> TrialResult:
    """Hits until everybody who can be hit was, looked at after each of them."""
    treated, untreated, hits = nodes, nodes, []
    while ratio * treated + untreated > 0:
        weight = ratio * treated
        is_treated = bool(rng.random() < weight / (weight + untreated))
        hits.append(TrialHit(is_treated, treated, untreated))
        treated, untreated = treated - is_treated, untreated - (not is_treated)
    return judge_trial(hits)


def share(finding: TrialFinding, ratio: float, nodes: int = 50, runs: int = 300) -> float:
    rng = np.random.default_rng(1)
    return sum(drawn(rng, ratio, nodes).finding is finding for _ in range(runs)) / runs


def test_what_prevents_nearly_all_is_known_after_a_handful_of_hits() -> None:
    rng = np.random.default_rng(1)
    results = [drawn(rng, 0.02, 20) for _ in range(100)]
    assert all(result.finding is TrialFinding.HELPS for result in results)
    assert np.median([result.at_hit for result in results]) <= 7


@pytest.mark.parametrize("nodes", [10, 50, 200])
def test_what_does_nothing_is_hardly_ever_said_to_help_however_often_one_looks(nodes: int) -> None:
    assert share(TrialFinding.HELPS, 1.0, nodes) <= 0.05


def test_what_does_nothing_or_harm_is_found_out() -> None:
    assert share(TrialFinding.DOES_NOT_HELP, 1.0, 200) >= 0.9
    assert share(TrialFinding.DOES_NOT_HELP, 3.0) >= 0.95
    assert share(TrialFinding.DOES_NOT_HELP, 0.2) <= 0.05


def test_few_hits_say_nothing() -> None:
    for hits in ([], [TrialHit(False, 20, 20)] * 3):
        result = judge_trial(hits)
        assert result.finding is TrialFinding.UNKNOWN
        assert result.low == 0.0
        assert result.at_hit is None


def test_the_bounds_hold_the_truth_at_whatever_moment_one_stops() -> None:
    rng = np.random.default_rng(3)
    results = [drawn(rng, 0.3, 50) for _ in range(200)]
    assert sum(result.low <= 0.3 <= result.high for result in results) >= 190


def test_hits_when_one_side_has_nobody_left_tell_nothing() -> None:
    before = [TrialHit(False, 5, 5)] * 3
    after = [*before, *[TrialHit(True, 5, 0)] * 20]
    assert judge_trial(after).finding is TrialFinding.UNKNOWN
    assert judge_trial(after).high == judge_trial(before).high
