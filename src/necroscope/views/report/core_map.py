"""How each core spent each second around an incident, as shares by mode, for the picture of a
report.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from necroscope.model.core_shares import BUSY_MODES, MODE_PARTS
from necroscope.model.units import NS_PER_S
from necroscope.store.query import Store

_COLUMNS: Final = {mode: MODE_PARTS[mode] for mode in BUSY_MODES}


@dataclass(frozen=True, slots=True)
class CoreMap:
    """`shares[mode]` has a row a core and a column a second from `start_ns`; NaN is a second that
    no row speaks for.

    `left_out` cores were less busy in the kernel than any that is shown.
    """

    start_ns: int
    cpus: tuple[int, ...]
    shares: dict[str, NDArray[np.float64]]
    left_out: int

    @property
    def seconds(self) -> int:
        return int(self.shares["user"].shape[1])


def read_core_map(
    store: Store, from_ns: int, to_ns: int, most_cores: int, always: Collection[int] = ()
) -> CoreMap:
    """The cores that were busiest outside user mode, in order of number; `always` are shown
    whatever they did.
    """
    seconds = max(1, round((to_ns - from_ns) / NS_PER_S))
    rows = store.rows("cores", from_ns, to_ns + NS_PER_S)
    cpu = rows.column("cpu").to_numpy()
    cpus = np.unique(cpu)
    elapsed = rows.column("elapsed_ns").to_numpy().astype(np.float64)
    # A row speaks for the time before it.
    second = ((rows.column("time").to_numpy() - elapsed / 2 - from_ns) // NS_PER_S).astype(np.int64)
    inside = (second >= 0) & (second < seconds)
    place = (np.searchsorted(cpus, cpu)[inside], second[inside])
    whole = _sums(place, elapsed[inside], (len(cpus), seconds))
    shares = {}
    for mode, names in _COLUMNS.items():
        spent = np.sum([rows.column(name).to_numpy() for name in names], axis=0)[inside]
        with np.errstate(invalid="ignore"):
            shares[mode] = np.clip(
                _sums(place, spent, whole.shape) / np.where(whole > 0, whole, np.nan), 0, 1
            )
    shown = _shown(cpus, shares, most_cores, always)
    chosen = {mode: table[shown] for mode, table in shares.items()}
    return CoreMap(from_ns, tuple(cpus[shown].tolist()), chosen, len(cpus) - len(shown))


def _sums(
    place: tuple[NDArray[np.int64], NDArray[np.int64]],
    values: NDArray[np.float64],
    shape: tuple[int, int],
) -> NDArray[np.float64]:
    table = np.zeros(shape)
    np.add.at(table, place, values)
    return table


def _shown(
    cpus: NDArray[np.int16],
    shares: dict[str, NDArray[np.float64]],
    most: int,
    always: Collection[int],
) -> NDArray[np.int64]:
    if not len(cpus):
        return np.array([], dtype=np.int64)
    held = np.nan_to_num(np.sum([shares[mode] for mode in BUSY_MODES[1:]], axis=0)).max(axis=1)
    held[np.isin(cpus, list(always))] = np.inf
    return np.sort(np.argsort(-held, kind="stable")[:most])
