"""Minutes of cores: how each spent its time, and what its worst tick was; a second of trouble must
not drown in means.
"""

from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from necroscope.model.core_shares import BUSY_MODES, MINUTE_NS, MODE_PARTS
from necroscope.store.query import Store

_COLUMNS: Final = (
    "time",
    "cpu",
    "elapsed_ns",
    *(column for columns in MODE_PARTS.values() for column in columns),
)
_DIGITS: Final = 4

Columns = dict[str, list[Any]]
Numbers = NDArray[np.int64]


def core_minutes(store: Store, from_ns: int, to_ns: int) -> Columns:
    """Rows of the lake's `core_minutes` for the ticks that ended after `from_ns` and not after
    `to_ns`.
    """
    rows = store.rows("cores", from_ns + 1, to_ns + 1, columns=_COLUMNS)
    if not rows.num_rows:
        return {}
    # A row speaks for the time before it.
    minute, cpu = (_numbers(rows, "time") - 1) // MINUTE_NS, _numbers(rows, "cpu")
    keys, place = np.unique(np.stack([minute, cpu]), axis=1, return_inverse=True)
    place = place.reshape(-1)
    elapsed = np.maximum(_numbers(rows, "elapsed_ns"), 1)
    spent = {
        mode: np.sum([_numbers(rows, column) for column in columns], axis=0)
        for mode, columns in MODE_PARTS.items()
    }
    spent["busy"] = np.sum([spent[mode] for mode in BUSY_MODES], axis=0)
    whole = _sums(place, elapsed)
    found: Columns = {
        "time": (keys[0] * MINUTE_NS).tolist(),
        "cpu": keys[1].tolist(),
        "ticks": np.bincount(place).tolist(),
    }
    found |= {mode: _round(_sums(place, spent[mode]) / whole) for mode in MODE_PARTS}
    for mode in ("busy", "system", "softirq", "steal"):
        found[f"worst_{mode}"] = _round(_largest(place, spent[mode] / elapsed, len(whole)))
    return found | {"worst_delay_ns": _worst_delays(store, from_ns, to_ns, keys)}


def _worst_delays(
    store: Store, from_ns: int, to_ns: int, keys: NDArray[np.int64]
) -> list[int | None]:
    """The longest that a raised softirq waited, or waits still; None where nothing was measured."""
    rows = store.rows(
        "softirq_delay", from_ns + 1, to_ns + 1, columns=("time", "cpu", "worst_ns", "pending_ns")
    )
    if not rows.num_rows:
        return [None] * keys.shape[1]
    own = (_numbers(rows, "time") - 1) // MINUTE_NS << 16 | _numbers(rows, "cpu")
    wanted = keys[0] << 16 | keys[1]  # sorted, because the minutes are
    place = np.minimum(np.searchsorted(wanted, own), len(wanted) - 1)
    known = wanted[place] == own
    delay = np.maximum(_numbers(rows, "worst_ns"), _numbers(rows, "pending_ns"))
    worst = np.full(len(wanted), -1, dtype=np.int64)
    np.maximum.at(worst, place[known], delay[known])
    return [None if value < 0 else value for value in worst.tolist()]


def _sums(place: Numbers, values: Numbers) -> NDArray[np.float64]:
    sums = np.zeros(int(place.max()) + 1)
    np.add.at(sums, place, values)
    return sums


def _largest(place: Numbers, shares: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    worst = np.zeros(count)
    np.maximum.at(worst, place, shares)
    return worst


def _round(shares: NDArray[np.float64]) -> list[float]:
    """Ticks are of 10 ms: more digits say nothing and cost bytes."""
    rounded: list[float] = np.round(np.clip(shares, 0, 1), _DIGITS).tolist()
    return rounded


def _numbers(rows: pa.Table, name: str) -> Numbers:
    values: Numbers = rows.column(name).to_numpy().astype(np.int64, copy=False)
    return values
