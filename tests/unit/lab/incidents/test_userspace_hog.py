"""A hog is one only if somebody waits behind it."""

from types import SimpleNamespace
from typing import Any

import pytest

from necroscope.lab.incidents.userspace_hog import UserspaceHog
from necroscope.lab.measured import Measurements
from necroscope.lab.scenario import ImpactMissing

NS = 1_000_000_000
STAGE: Any = SimpleNamespace(core=1, seconds=15.0)


def hog() -> UserspaceHog:
    one = UserspaceHog()
    one.hog, one.victim = (
        SimpleNamespace(comm=comm, pid=pid) for comm, pid in (("loop", 7), ("service", 8))
    )  # type: ignore[assignment]
    return one


def measured(waited_share: float) -> Measurements:
    readings = {
        "/proc/stat": [
            (second * NS, f"cpu1 {second * 100} 0 0 0 0 0 0 0\n") for second in range(30)
        ],
        "/proc/8/schedstat": [
            (second * NS, f"{second} {round(second * waited_share * NS)} {second}")
            for second in range(30)
        ],
    }
    return Measurements(readings, (0, 10 * NS), (10 * NS, 25 * NS))


def test_the_wait_of_who_is_bound_to_the_same_core_is_in_the_label() -> None:
    truth = hog().verify(STAGE, measured(0.6))
    assert truth.impact["victim_wait_share"] == pytest.approx(0.6)
    assert truth.culprit is not None
    assert (truth.core, truth.culprit.comm) == (1, "loop")


def test_a_full_core_behind_which_nobody_waits_has_no_label() -> None:
    with pytest.raises(ImpactMissing, match="the service waited"):
        hog().verify(STAGE, measured(0.05))
