"""What the healthy scenarios have in common: a machine that works hard and whose packets pass as if
it did not.
"""

from typing import Any

from necroscope.lab.measured import Measurements
from necroscope.lab.scenario import Truth, reached
from necroscope.lab.stage import Stage


def busy_and_well(stage: Stage, measured: Measurements, *, least_busy: float) -> Truth:
    """Cores that were busy enough to be looked at, and a probe that was not held up."""
    cores = sorted({stage.core, *stage.other_cores})
    busy = sum(
        1 - measured.shares(core)["idle"] - measured.shares(core)["iowait"] for core in cores
    )
    impact: dict[str, Any] = {
        "busy_cores": reached("cores that were busy", busy, at_least=least_busy)
    }
    if stage.probe_logs:
        impact["packet_delay_p99_ms"] = reached(
            "99th percentile of packet delays in ms", measured.delays().p99_ms, at_most=50
        )
    impact["system_share"] = round(measured.shares(stage.core)["system"], 4)
    return Truth(impact)
