"""From which size of a number on nodes fail, on times at risk whose truth is known."""

import numpy as np
import pytest

from necroscope.fleet.cohorts.dose import DoseRelation, TimeAtRisk, find_doses

STEP_DAYS = 0.1
NAMES = ("uptime", "dead", "noise")


def drawn(
    seed: int,
    *,
    begins: tuple[str, float] | None,
    is_above: bool = True,
    nodes: int = 60,
    a_day: float = 0.8,
) -> TimeAtRisk:
    """Nodes that leak at different speeds; hits come from a size of one number on, or at any
    time.
    """
    rng = np.random.default_rng(seed)
    at_risk, at_hit = [], []
    for _ in range(nodes):
        leak, uptime = 9_000 * np.exp(rng.normal(0, 0.3)), rng.uniform(0, 6)
        for _ in range(140):
            sizes = (uptime, leak * uptime, rng.normal(100, 20))
            is_due = begins is None or (sizes[NAMES.index(begins[0])] >= begins[1]) == is_above
            if rng.random() < (a_day if is_due else 0.002) * STEP_DAYS:
                at_hit.append(sizes)
                break
            at_risk.append(sizes)
            uptime += STEP_DAYS
    days = np.full(len(at_risk), STEP_DAYS)
    return TimeAtRisk(NAMES, days, np.array(at_risk).T, np.array(at_hit).T)


@pytest.mark.parametrize(
    ("begins", "other"), [(("dead", 58_000.0), "uptime"), (("uptime", 6.1), "dead")]
)
def test_the_number_that_matters_comes_first_and_explains_the_other(
    begins: tuple[str, float], other: str
) -> None:
    name, truth = begins
    runs = [find_doses(drawn(seed, begins=begins)) for seed in range(20)]
    assert all(doses[0].name == name for doses in runs)
    assert all(abs(doses[0].threshold / truth - 1) < 0.15 for doses in runs)
    assert sum(doses[0].low <= truth <= doses[0].high for doses in runs) >= 17
    assert all(doses[0].rate_beyond > 50 * doses[0].rate_within for doses in runs)
    relations = [dose.relation for doses in runs for dose in doses[1:] if dose.name == other]
    assert relations.count(DoseRelation.EXPLAINED) >= 16
    assert not [dose for doses in runs for dose in doses if dose.name == "noise"]


def test_where_no_size_matters_none_is_named() -> None:
    found = [find_doses(drawn(seed, begins=None, a_day=0.1)) for seed in range(40)]
    assert sum(map(bool, found)) <= 2


def test_what_happens_only_early_is_reported_as_an_upper_bound() -> None:
    doses = find_doses(drawn(3, begins=("uptime", 1.5), is_above=False, nodes=200, a_day=2.0))
    assert doses[0].name == "uptime"
    assert not doses[0].is_above
    assert abs(doses[0].threshold / 1.5 - 1) < 0.15


def test_four_hits_say_nothing_of_a_threshold() -> None:
    risk = drawn(1, begins=("dead", 58_000))
    few = TimeAtRisk(risk.names, risk.days, risk.at_risk, risk.at_hit[:, :4])
    assert find_doses(few) == ()


def test_what_is_not_known_counts_on_neither_side() -> None:
    risk = drawn(1, begins=("dead", 58_000))
    rng = np.random.default_rng(2)
    at_risk, at_hit = risk.at_risk.copy(), risk.at_hit.copy()
    at_risk[:, rng.random(at_risk.shape[1]) < 0.5] = np.nan
    at_hit[1, 0] = np.nan
    (first, *_) = find_doses(TimeAtRisk(risk.names, risk.days, at_risk, at_hit))
    assert first.name == "dead"
    assert abs(first.threshold / 58_000 - 1) < 0.15
    assert first.hits == at_hit.shape[1] - 1


def test_a_number_that_never_changes_is_passed_over() -> None:
    risk = drawn(1, begins=("dead", 58_000))
    same = np.full_like(risk.at_risk[:1], 7.0), np.full_like(risk.at_hit[:1], 7.0)
    assert find_doses(TimeAtRisk(("cores",), risk.days, *same)) == ()
