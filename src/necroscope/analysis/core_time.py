"""How cores spend their time: the rows of `cores` as shares of elapsed time, and what is usual."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from necroscope.analysis.columns import ColumnArrays, Flags, Floats, Numbers, core_breaks
from necroscope.model.core_shares import MODE_PARTS
from necroscope.model.span import Span
from necroscope.model.units import NS_PER_S

MODES: Final[dict[str, tuple[str, ...]]] = {
    **MODE_PARTS,
    "iowait": ("iowait_ns",),
    "kernel": ("system_ns", "irq_ns", "softirq_ns", "steal_ns"),
    "all": tuple(name for parts in MODE_PARTS.values() for name in parts),
}
_FULL: Final = 0.95
_SOME: Final = 0.1
_SHORT_NS: Final = 180 * NS_PER_S


@dataclass(frozen=True, slots=True)
class CoreShares:
    """Rows of `cores` sorted by core, as shares of the elapsed time."""

    rows: ColumnArrays
    breaks: Flags
    shares: dict[str, Floats]

    def usual(self, mode: str) -> Floats:
        """For each row what is usual: the median of its core, or of the whole machine if that is
        lower.
        """
        values, cpus = self.shares[mode], self.rows["cpu"]
        numbers, place = np.unique(cpus, return_inverse=True)
        of_machine = usual(values, self.rows["time"])
        of_core = [
            min(of_machine, usual(values[place == row], self.rows["time"]))
            for row in range(len(numbers))
        ]
        return np.array(of_core)[place]

    def span(self, first: int, end: int, mode: str | None = None) -> Span:
        """From the first to the last row of a stretch; with a mode to the part of a second that its
        edges were held in it.
        """
        times, elapsed_ns = self.rows["time"], self.rows["elapsed_ns"]
        start_ns, end_ns = int(times[first] - elapsed_ns[first]), int(times[end - 1])
        if mode is None or end - first < 2:
            return Span(start_ns, end_ns)
        share = self.shares[mode]
        start_ns += int((1 - share[first]) * elapsed_ns[first])
        end_ns -= int((1 - share[end - 1]) * elapsed_ns[end - 1])
        # A row that is full may have begun in the one before, which had too little to count.
        if share[first] >= _FULL and not self.breaks[first]:
            start_ns -= (
                int(share[first - 1] * elapsed_ns[first - 1]) if share[first - 1] >= _SOME else 0
            )
        if share[end - 1] >= _FULL and end < len(share) and not self.breaks[end]:
            end_ns += int(share[end] * elapsed_ns[end]) if share[end] >= _SOME else 0
        return Span(start_ns, end_ns)

    def held_s(self, mode: str, first: int, end: int) -> float:
        return (
            float((self.shares[mode][first:end] * self.rows["elapsed_ns"][first:end]).sum())
            / NS_PER_S
        )


def usual(values: Floats, times: Numbers) -> float:
    """What is usual in these rows of a stretch of time."""
    if not len(values):
        return 0.0
    is_short = float(times.max() - times.min()) < _SHORT_NS
    return float(np.percentile(values, 25 if is_short else 50))


def core_shares(rows: ColumnArrays) -> CoreShares:
    rows = rows.at(rows["elapsed_ns"] > 0) if len(rows) else rows
    shares = {
        mode: np.minimum(
            sum((np.nan_to_num(rows[name]) for name in names), np.zeros(len(rows)))
            / rows["elapsed_ns"],
            1.0,
        )
        for mode, names in MODES.items()
    }
    return CoreShares(rows, core_breaks(rows["cpu"]), shares)
