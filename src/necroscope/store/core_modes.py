"""Cores by time for a picture: in each column the worst tick of each mode, and the worst softirq delay."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from necroscope.model.units import NS_PER_S
from necroscope.store.query import Store
from necroscope.store.time_limit import TimeLimit
from necroscope.store.window_reading import WindowReading

MODES: Final = ("busy", "user", "system", "irq", "softirq", "steal")
_COLUMNS: Final = ("time", "cpu", "elapsed_ns", "user_ns", "nice_ns", "system_ns", "irq_ns", "softirq_ns", "steal_ns")
_MOST_COLUMNS_OF_A_ROW: Final = 64
_LONGEST_TICK_NS: Final = 2 * NS_PER_S
_PARTS: Final = {
    "user": ("user_ns", "nice_ns"),
    "system": ("system_ns",),
    "irq": ("irq_ns",),
    "softirq": ("softirq_ns",),
    "steal": ("steal_ns",),
}


@dataclass(slots=True)
class CoreModes:
    """`worst[mode][core, column]` is the largest share of a tick; NaN where no tick was recorded. `delay_ns` is 0 there.

    The worst and not the mean: a core that was held for a second must be seen in a picture of a week.
    """

    start_ns: int
    column_ns: int
    cpus: list[int]
    worst: dict[str, NDArray[np.float32]]
    delay_ns: NDArray[np.int64]
    left_out: list[str] = field(default_factory=list)


def read_core_modes(
    store: Store,
    from_ns: int,
    to_ns: int,
    columns: int,
    cpus: Sequence[int],
    limit: TimeLimit | None = None,
    *,
    with_delay: bool = True,
) -> CoreModes:
    """Delays are three times as many rows as all modes together: without them the picture is there in half the time."""
    column_ns = max(1, -(-(to_ns - from_ns) // columns))
    shape = (len(cpus), columns)
    modes = CoreModes(
        from_ns, column_ns, list(cpus), {mode: np.full(shape, np.nan, np.float32) for mode in MODES}, np.zeros(shape, np.int64)
    )
    reading = WindowReading(store, from_ns, to_ns, limit or TimeLimit())
    places = np.full(max(cpus, default=0) + 1, -1, np.int64)
    places[list(cpus)] = np.arange(len(cpus))
    wanted = ("time", "cpu", "worst_ns", "pending_ns")
    # The tick that ends after the window speaks for its last moment.
    until_ns = to_ns + _LONGEST_TICK_NS
    for cores, delays in reading.segments(
        lambda reader: (
            reader.read("cores", from_ns, until_ns, _COLUMNS),
            reader.read("softirq_delay", from_ns, until_ns, wanted) if with_delay else None,
        )
    ):
        _add_cores(modes, cores, places)
        if delays is not None:
            _add_delays(modes, delays, places)
    modes.left_out += reading.left_out()
    return modes


def _add_cores(modes: CoreModes, rows: pa.Table, places: NDArray[np.int64]) -> None:
    if not rows.num_rows:
        return
    elapsed = np.maximum(_values(rows, "elapsed_ns"), 1)
    shares = {mode: sum(_values(rows, name) for name in names) / elapsed for mode, names in _PARTS.items()}
    shares["busy"] = np.sum(list(shares.values()), axis=0)
    # A row speaks for all the time before it, which may be several columns; a pause of the recorder is a gap all the same.
    for back in range(min(-(-int(elapsed.max()) // modes.column_ns), _MOST_COLUMNS_OF_A_ROW)):
        cell, chosen = _cells(modes, rows, places, back, elapsed)
        for mode, share in shares.items():
            _raise_to(modes.worst[mode], cell, share[chosen])


def _add_delays(modes: CoreModes, rows: pa.Table, places: NDArray[np.int64]) -> None:
    if rows.num_rows:
        cell, chosen = _cells(modes, rows, places)
        delay = np.maximum(_values(rows, "worst_ns"), _values(rows, "pending_ns"))[chosen]
        np.maximum.at(modes.delay_ns.reshape(-1), cell, delay)


def _cells(
    modes: CoreModes, rows: pa.Table, places: NDArray[np.int64], back: int = 0, elapsed: NDArray[np.int64] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Flat cell, `back` columns before its end, of each row that has one there; and the numbers of those rows."""
    columns = modes.delay_ns.shape[1]
    cpu = rows.column("cpu").to_numpy()
    place = np.where((cpu >= 0) & (cpu < len(places)), places[np.clip(cpu, 0, len(places) - 1)], -1)
    column = (_values(rows, "time") - 1 - modes.start_ns) // modes.column_ns - back
    is_inside = (place >= 0) & (column >= 0) & (column < columns)
    if back and elapsed is not None:
        is_inside &= back * modes.column_ns < elapsed
    chosen = np.flatnonzero(is_inside)
    return place[chosen] * columns + column[chosen], chosen


def _raise_to(table: NDArray[np.float32], cell: NDArray[np.int64], share: NDArray[np.float64]) -> None:
    flat = table.reshape(-1)
    np.fmax.at(flat, cell, np.clip(share, 0, 1).astype(np.float32))


def _values(rows: pa.Table, name: str) -> NDArray[np.int64]:
    values: NDArray[np.int64] = rows.column(name).to_numpy()
    return values
