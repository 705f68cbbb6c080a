"""How the longest wait of its victims decides whether a scenario was what it is meant to be."""

from types import SimpleNamespace

import pytest

from necroscope.lab.healthy.worker_pool import WorkerPool
from necroscope.lab.incidents.user_lock_convoy import UserLockConvoy
from necroscope.lab.noted_waits import WaitScenario
from necroscope.lab.scenario import ImpactMissing, KnownCulprit, KnownOrigin, Truth


def verified(scenario: WaitScenario, **waits_ms: int) -> Truth:
    scenario.logs = list(waits_ms)
    scenario.culprit = KnownCulprit("server", 7)
    measured = SimpleNamespace(highest=waits_ms.__getitem__)
    return scenario.verify(None, measured)  # type: ignore[arg-type]


def test_the_longest_wait_of_all_victims_makes_the_incident_and_names_who_made_it() -> None:
    truth = verified(UserLockConvoy(), one=20, other=600)
    assert truth.impact == {"worst_wait_ms": 600}
    assert (truth.culprit, truth.origin) == (
        KnownCulprit("server", 7),
        KnownOrigin("process", "server"),
    )


def test_where_nothing_is_wrong_nothing_is_blamed() -> None:
    truth = verified(WorkerPool(), one=20)
    assert (truth.culprit, truth.origin) == (None, None)


@pytest.mark.parametrize(("scenario", "worst_ms"), [(UserLockConvoy(), 300), (WorkerPool(), 300)])
def test_waits_on_the_wrong_side_of_the_bound_give_no_label(
    scenario: WaitScenario, worst_ms: int
) -> None:
    with pytest.raises(ImpactMissing):
        verified(scenario, one=worst_ms)
