"""Figures of all cores without a series per core: seconds held by mode, a histogram of shares, the
worst of the last minute.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from necroscope.model.core_shares import BUSY_MODES, MODE_PARTS
from necroscope.model.definitions import SATURATED_RATIO
from necroscope.model.units import NS_PER_S
from necroscope.views.prometheus.exposition import Counter, Gauge, Histogram, Metric
from necroscope.views.prometheus.worst import Worst

_PARTS: Final = {mode: MODE_PARTS[mode] for mode in BUSY_MODES}
COLUMNS: Final = (
    "time",
    "cpu",
    "elapsed_ns",
    *(name for parts in _PARTS.values() for name in parts),
)
_KERNEL: Final = ("system", "irq", "softirq", "steal")
_BOUNDS: Final = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 1.0)


class CoreFigures:
    """Fed with new rows of `cores` in order of time."""

    def __init__(self) -> None:
        self._held = Counter(
            "necroscope_core_held_seconds_total",
            "Core seconds in which 90 % or more of a core went to the kernel (system, irq, softirq,"
            " steal together; the mode is the greatest of them) or to user code.",
            ("mode",),
        )
        self._shares = Histogram(
            "necroscope_core_tick_ratio",
            "Share of each tick of each core that went to a mode.",
            _BOUNDS,
            ("mode",),
        )
        self._worst_ratio = Gauge(
            "necroscope_worst_core_ratio",
            "Share of the worst core in its worst tick of the last minute.",
            ("mode",),
        )
        self._worst_core = Gauge("necroscope_worst_core_number", "Which core that was.", ("mode",))
        self._worst = {mode: Worst() for mode in _PARTS}
        for mode in _PARTS:
            self._held.add(0, mode)

    def metrics(self, now_ns: int) -> Iterator[Metric]:
        for mode, worst in self._worst.items():
            found = worst.before(now_ns)
            self._worst_ratio.set(found[0] if found else None, mode)
            self._worst_core.set(found[1] if found else None, mode)
        yield from (self._held, self._shares, self._worst_ratio, self._worst_core)

    def take(self, rows: pa.Table, *, counts: bool) -> None:
        """With `counts` off only the gauges are fed: what was before this process began is not
        counted by it.
        """
        if not rows.num_rows:
            return
        elapsed_ns = np.maximum(_values(rows, "elapsed_ns"), 1)
        shares = {
            mode: np.clip(sum(_values(rows, name) for name in names) / elapsed_ns, 0.0, 1.0)
            for mode, names in _PARTS.items()
        }
        for mode, share in shares.items():
            self._worst[mode].take(_values(rows, "time"), share, _values(rows, "cpu"))
        if counts:
            self._count_held(shares, elapsed_ns)
            for mode, share in shares.items():
                places = np.searchsorted(_BOUNDS, share, side="left")
                self._shares.add(
                    np.bincount(places, minlength=len(_BOUNDS) + 1).tolist(),
                    float(share.sum()),
                    mode,
                )

    def _count_held(
        self, shares: dict[str, NDArray[np.float64]], elapsed_ns: NDArray[np.int64]
    ) -> None:
        kernel = np.array([shares[mode] for mode in _KERNEL])
        is_held, greatest = kernel.sum(axis=0) >= SATURATED_RATIO, kernel.argmax(axis=0)
        for index, mode in enumerate(_KERNEL):
            self._held.add(float(elapsed_ns[is_held & (greatest == index)].sum()) / NS_PER_S, mode)
        self._held.add(
            float(elapsed_ns[shares["user"] >= SATURATED_RATIO].sum()) / NS_PER_S, "user"
        )


def _values(rows: pa.Table, name: str) -> NDArray[np.int64]:
    values: NDArray[np.int64] = rows.column(name).fill_null(0).to_numpy()
    return values
