"""Nobody waits behind a pinned worker, by the kernel's own count."""

from types import SimpleNamespace
from typing import Any

import pytest

from necroscope.lab.healthy.pinned_worker import PinnedWorker, waited_share
from necroscope.lab.measured import Measurements
from necroscope.lab.scenario import ImpactMissing

NS = 1_000_000_000
STAGE: Any = SimpleNamespace(core=1, other_cores=[0], seconds=15.0, probe_logs=None)


def measured(waited_us_per_s: int, user_per_s: int = 98) -> Measurements:
    def pressure(second: int) -> str:
        return (
            f"some avg10=0.00 avg60=0.00 avg300=0.00 total={7 + second * waited_us_per_s}\nfull"
            " avg10=0.00 total=999999999\n"
        )

    def stat(second: int) -> str:
        return (
            f"cpu0 0 0 0 {second * 100} 0 0 0 0\ncpu1 {second * user_per_s} 0 0"
            f" {second * (100 - user_per_s)} 0 0 0 0\n"
        )

    texts = {"/proc/pressure/cpu": pressure, "/proc/stat": stat}
    readings = {
        path: [(second * NS, text(second)) for second in range(30)] for path, text in texts.items()
    }
    return Measurements(readings, (0, 10 * NS), (10 * NS, 25 * NS))


def test_what_waited_is_a_share_of_elapsed_time() -> None:
    assert waited_share(measured(250_000)) == pytest.approx(0.25)


def test_a_full_core_that_nobody_waits_for_is_labelled() -> None:
    truth = PinnedWorker().verify(STAGE, measured(4_000))
    assert truth.impact["waited_share"] == pytest.approx(0.004)
    assert truth.core is None


def test_without_a_worker_or_with_somebody_behind_it_there_is_no_label() -> None:
    with pytest.raises(ImpactMissing, match="busy"):
        PinnedWorker().verify(STAGE, measured(4_000, user_per_s=5))
    with pytest.raises(ImpactMissing, match="waited"):
        PinnedWorker().verify(STAGE, measured(400_000))
