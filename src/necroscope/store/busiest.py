"""The stretch in which a core worked hardest: where to look when no incident was found."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from necroscope.model.core_shares import BUSY_MODES, MINUTE_NS
from necroscope.model.units import NS_PER_S
from necroscope.store.core_modes import CoreModes, read_core_modes
from necroscope.store.query import Store
from necroscope.store.seen_cores import SeenCores

# Up to this long, ticks are read; beyond it minutes, of which a week has ten thousand per core.
_TICKS_NS: Final = 2 * 3600 * NS_PER_S
_COLUMN_NS: Final = 5 * NS_PER_S
# A core busy in user mode is what most nodes have; one busy in the kernel says more.
_USER_WEIGHT: Final = 0.5
_LEAST_SHARE: Final = 0.2
# Neighbouring columns belong to the stretch while they reach this much of its peak.
_OF_PEAK: Final = 0.8


@dataclass(frozen=True, slots=True)
class BusiestStretch:
    """`share` is that of the worst tick, in `mode`."""

    cpu: int
    mode: str
    share: float
    from_ns: int
    to_ns: int


def busiest_stretch(store: Store) -> BusiestStretch | None:
    """None where every core was mostly idle, or nothing is known of cores."""
    first_ns, last_ns = store.span()
    column_ns = _COLUMN_NS if last_ns - first_ns <= _TICKS_NS else MINUTE_NS
    start_ns = first_ns - first_ns % column_ns
    columns = (last_ns - start_ns) // column_ns + 1
    modes = read_core_modes(
        store,
        start_ns,
        start_ns + columns * column_ns,
        columns,
        SeenCores(store).cpus(),
        with_delay=False,
    )
    return _peak(modes, (first_ns, last_ns)) if modes.cpus else None


def _peak(modes: CoreModes, span: tuple[int, int]) -> BusiestStretch | None:
    weighed = {mode: _weigh(modes, mode) for mode in BUSY_MODES}
    mode = max(weighed, key=lambda name: float(weighed[name].max()))
    place, column = np.unravel_index(int(weighed[mode].argmax()), weighed[mode].shape)
    peak = float(weighed[mode][place, column])
    if peak < _LEAST_SHARE:
        return None
    first, last = _run_around(weighed[mode][place], int(column), peak * _OF_PEAK)
    return BusiestStretch(
        modes.cpus[place],
        mode,
        float(modes.worst[mode][place, column]),
        max(span[0], modes.start_ns + first * modes.column_ns),
        min(span[1], modes.start_ns + (last + 1) * modes.column_ns),
    )


def _weigh(modes: CoreModes, mode: str) -> NDArray[np.float64]:
    weight = _USER_WEIGHT if mode == "user" else 1.0
    return np.nan_to_num(modes.worst[mode].astype(np.float64)) * weight


def _run_around(row: NDArray[np.float64], column: int, least: float) -> tuple[int, int]:
    """First and last column of the run around `column` that stays above `least`."""
    below = np.flatnonzero(row < least)
    before, after = below[below < column], below[below > column]
    return (
        int(before[-1]) + 1 if before.size else 0,
        int(after[0]) - 1 if after.size else row.size - 1,
    )
