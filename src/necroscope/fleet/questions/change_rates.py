"""How often something happened on nodes before and after they changed, and how much of it chance
could have done.
"""

from dataclasses import dataclass
from typing import Any

from necroscope.fleet.cohorts.intervals import Interval, chance_of_so_few, ratio_interval


@dataclass(frozen=True, slots=True)
class Rates:
    """Before and after, on the same nodes; `observed` in node-days. `ratio` is the rate after in
    parts of that before.
    """

    nodes: int
    times_before: int
    times_after: int
    days_before: float
    days_after: float
    affected_before: int
    affected_after: int
    burst: float

    @property
    def expected(self) -> float | None:
        """Times after, had the rate of before gone on. None: nothing was observed before."""
        return self.times_before / self.days_before * self.days_after if self.days_before else None

    @property
    def interval(self) -> Interval | None:
        if not self.days_before or not self.days_after:
            return None
        return ratio_interval(
            self.times_after / self.burst,
            self.times_before / self.burst,
            self.days_after,
            self.days_before,
        )

    @property
    def chance(self) -> float | None:
        if not self.days_before or not self.days_after:
            return None
        return chance_of_so_few(
            self.times_after / self.burst,
            self.times_before / self.burst,
            self.days_after,
            self.days_before,
        )

    def as_json(self) -> dict[str, Any]:
        interval = self.interval
        return {
            "nodes": self.nodes,
            "before": {
                "times": self.times_before,
                "node_days": round(self.days_before, 2),
                "affected": self.affected_before,
            },
            "after": {
                "times": self.times_after,
                "node_days": round(self.days_after, 2),
                "affected": self.affected_after,
            },
            "expected": None if self.expected is None else round(self.expected, 2),
            "ratio_low": None if interval is None else interval.low,
            "ratio_high": None
            if interval is None or interval.high == float("inf")
            else interval.high,
            "chance": self.chance,
            "burst": round(self.burst, 2),
        }
