"""Cores by time for a picture: in each column the worst tick of each mode, and the worst softirq
delay.

Columns of whole minutes are read from `core_minutes`, a sixtieth of the rows; a segment without it
gives the same from its ticks.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from necroscope.model.core_shares import BUSY_MODES, MINUTE_NS, MODE_PARTS, WHOLE, WORST_MODES
from necroscope.model.units import NS_PER_S
from necroscope.segment.reader import SegmentReader
from necroscope.store.query import Store
from necroscope.store.time_limit import TimeLimit
from necroscope.store.window_reading import WindowReading

MODES: Final = WORST_MODES
_TICK_COLUMNS: Final = (
    "time",
    "cpu",
    "elapsed_ns",
    *(part for mode in BUSY_MODES for part in MODE_PARTS[mode]),
)
_DELAY_COLUMNS: Final = ("time", "cpu", "worst_ns", "pending_ns")
_MINUTE_COLUMNS: Final = ("time", "cpu", "ticks", *(f"worst_{mode}" for mode in MODES))
_MOST_COLUMNS_OF_A_ROW: Final = 64
_LONGEST_TICK_NS: Final = 2 * NS_PER_S
Integers = NDArray[np.int64]


@dataclass(slots=True)
class CoreModes:
    """`worst[mode][core, column]` is the largest share of a tick; NaN where no tick was recorded.
    `delay_ns` is 0 there.

    The worst and not the mean: a core that was held for a second must be seen in a picture of a
    week.
    """

    start_ns: int
    column_ns: int
    cpus: list[int]
    worst: dict[str, NDArray[np.float32]]
    delay_ns: Integers
    left_out: list[str] = field(default_factory=list)


class _Question(NamedTuple):
    """What is read of each segment. Delays are three times as many rows as all modes together, so
    not all pictures have them.
    """

    from_ns: int
    to_ns: int
    takes_minutes: bool
    with_delay: bool


class _Rows(NamedTuple):
    """Of one segment: either its minutes, or its ticks and delays."""

    minutes: pa.Table | None
    ticks: pa.Table | None = None
    delays: pa.Table | None = None


_NOTHING: Final = _Rows(None)


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
    column_ns = max(1, -(-(to_ns - from_ns) // columns))
    shape = (len(cpus), columns)
    worst = {mode: np.full(shape, np.nan, np.float32) for mode in MODES}
    modes = CoreModes(from_ns, column_ns, list(cpus), worst, np.zeros(shape, np.int64))
    places = np.full(max(cpus, default=0) + 1, -1, np.int64)
    places[list(cpus)] = np.arange(len(cpus))
    takes_minutes = column_ns % MINUTE_NS == 0 and from_ns % MINUTE_NS == 0
    question = _Question(from_ns, to_ns, takes_minutes, with_delay)
    reading = WindowReading(
        store, from_ns, to_ns, limit or TimeLimit(), _tables_of(with_delay=with_delay)
    )
    for rows in reading.segments(
        lambda reader: _NOTHING if reading.stops_before(reader) else _read(reader, question)
    ):
        if rows.minutes is not None:
            _add_minutes(modes, rows.minutes, places)
        if rows.ticks is not None:
            _add_ticks(modes, rows.ticks, places)
        if rows.delays is not None:
            _add_delays(modes, rows.delays, places)
    modes.left_out += reading.left_out()
    return modes


def not_in_core_modes(store: Store, from_ns: int, to_ns: int, *, with_delay: bool) -> list[str]:
    """In words, from what the segments say of themselves and what reads have found, without reading
    them again.
    """
    reading = WindowReading(store, from_ns, to_ns, TimeLimit(), _tables_of(with_delay=with_delay))
    for _ in reading.segments(lambda reader: reader):
        pass
    return reading.left_out()


def _tables_of(*, with_delay: bool) -> tuple[str, ...]:
    """Without `core_minutes`: ticks make up for what is damaged there."""
    return ("cores", "softirq_delay", "*") if with_delay else ("cores", "*")


def _read(reader: SegmentReader, question: _Question) -> _Rows:
    from_ns, to_ns = question.from_ns, question.to_ns
    if question.takes_minutes and "core_minutes" in reader.tables:
        wanted = (*_MINUTE_COLUMNS, "worst_delay_ns") if question.with_delay else _MINUTE_COLUMNS
        minutes = reader.read("core_minutes", from_ns, to_ns, wanted)
        # None at all: its file is damaged, and the ticks know the same.
        if minutes.num_rows:
            return _Rows(minutes)
    # The tick that ends after the window speaks for its last moment.
    until_ns = to_ns + _LONGEST_TICK_NS
    ticks = reader.read("cores", from_ns, until_ns, _TICK_COLUMNS)
    return _Rows(
        None,
        ticks,
        reader.read("softirq_delay", from_ns, to_ns + 1, _DELAY_COLUMNS)
        if question.with_delay
        else None,
    )


def _add_minutes(modes: CoreModes, rows: pa.Table, places: Integers) -> None:
    cell, chosen = _cells(
        modes, _places(rows, places), (_values(rows, "time") - modes.start_ns) // modes.column_ns
    )
    with_ticks = _values(rows, "ticks")[chosen] > 0
    for mode in MODES:
        _raise_to(
            modes.worst[mode],
            cell[with_ticks],
            _values(rows, f"worst_{mode}")[chosen[with_ticks]] / WHOLE,
        )
    if "worst_delay_ns" in rows.column_names:
        np.maximum.at(modes.delay_ns.reshape(-1), cell, _values(rows, "worst_delay_ns")[chosen])


def _add_ticks(modes: CoreModes, rows: pa.Table, places: Integers) -> None:
    if not rows.num_rows:
        return
    elapsed = np.maximum(_values(rows, "elapsed_ns"), 1)
    shares = _shares(rows, elapsed)
    place = _places(rows, places)
    time = _values(rows, "time") - modes.start_ns
    last, first = (time - 1) // modes.column_ns, (time - elapsed) // modes.column_ns
    # A row speaks for all the time before it, which may be several columns; a pause of the recorder
    # is a gap all the same.
    for back in range(min(int((last - first).max()) + 1, _MOST_COLUMNS_OF_A_ROW)):
        cell, chosen = _cells(modes, np.where(last - back >= first, place, -1), last - back)
        for mode, share in shares.items():
            _raise_to(modes.worst[mode], cell, share[chosen])


def _shares(rows: pa.Table, elapsed: Integers) -> dict[str, NDArray[np.float64]]:
    """Rounded as in `core_minutes`."""
    amounts = {mode: sum(_values(rows, part) for part in MODE_PARTS[mode]) for mode in BUSY_MODES}
    amounts["busy"] = sum(amounts.values())
    return {
        mode: np.round(np.clip(amount / elapsed, 0, 1) * WHOLE) / WHOLE
        for mode, amount in amounts.items()
    }


def _add_delays(modes: CoreModes, rows: pa.Table, places: Integers) -> None:
    if rows.num_rows:
        cell, chosen = _cells(
            modes,
            _places(rows, places),
            (_values(rows, "time") - 1 - modes.start_ns) // modes.column_ns,
        )
        delay = np.maximum(_values(rows, "worst_ns"), _values(rows, "pending_ns"))[chosen]
        np.maximum.at(modes.delay_ns.reshape(-1), cell, delay)


def _places(rows: pa.Table, places: Integers) -> Integers:
    """The picture's row of each of these rows, -1 if it has none."""
    cpu = rows.column("cpu").to_numpy()
    place: Integers = np.where(
        (cpu >= 0) & (cpu < len(places)), places[np.clip(cpu, 0, len(places) - 1)], -1
    )
    return place


def _cells(modes: CoreModes, place: Integers, column: Integers) -> tuple[Integers, Integers]:
    """The flat cell of each row that has one, and the numbers of those rows."""
    columns = modes.delay_ns.shape[1]
    chosen = np.flatnonzero((place >= 0) & (column >= 0) & (column < columns))
    return place[chosen] * columns + column[chosen], chosen


def _raise_to(table: NDArray[np.float32], cell: Integers, share: NDArray[np.float64]) -> None:
    np.fmax.at(table.reshape(-1), cell, share.astype(np.float32))


def _values(rows: pa.Table, name: str) -> Integers:
    values = rows.column(name)
    numbers: Integers = (values.fill_null(0) if values.null_count else values).to_numpy()
    return numbers
