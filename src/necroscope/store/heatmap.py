"""The sub-second heat map of a window: a column is a second or more, a row an offset within it, a
cell the samples there.

    row 3  750 ms    0   0   2          weights[row, column]: a sample of 10:30:01.260 is in
    row 2  500 ms    0   0   2          column 1, row 1; is_known says which cells were recorded
    row 1  250 ms    0   1   2
    row 0    0 ms    1   0   2
                   :00 :01 :02
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from necroscope.errors import UsageError
from necroscope.model.span import Span
from necroscope.model.units import NS_PER_S
from necroscope.segment.reader import SegmentReader
from necroscope.segment.window import is_climbing
from necroscope.stacks.samples import narrow_numbers
from necroscope.stacks.tree import Flags, Numbers
from necroscope.store.choices import DEFAULT_ROWS
from necroscope.store.flame import ALL
from necroscope.store.query import Store
from necroscope.store.segment_selection import SegmentSelection, SelectedSamples
from necroscope.store.selection import Selection
from necroscope.store.time_limit import TimeLimit
from necroscope.store.window_reading import WindowReading

_MOST_ROWS: Final = 10_000
_LONGEST_COLUMN_S: Final = 86_400
_MOST_CELLS: Final = 20_000_000


class Cell(NamedTuple):
    """A cell, its time from `from_ns` to before `to_ns`, and the weight in it."""

    row: int
    column: int
    from_ns: int
    to_ns: int
    weight: int


@dataclass(frozen=True, slots=True)
class HeatMap:
    """`weights[row, column]`; row 0 is the start of a column. Columns begin at whole seconds UTC,
    the first at `start_ns`.

    Where `is_known` is False nothing was recorded (or asked for): that cell is not zero, it has no
    value.
    """

    weights: NDArray[np.int64]
    is_known: NDArray[np.bool_]
    column_totals: NDArray[np.int64]
    start_ns: int
    column_ns: int
    busiest: Cell | None
    quietest: Cell | None
    samples: int
    left_out: list[str]


@dataclass(frozen=True, slots=True)
class _Grid:
    """Cells counted along time: cell k is row k % rows of column k // rows."""

    start_ns: int
    column_ns: int
    rows: int
    columns: int

    def columns_of(self, from_ns: int, to_ns: int) -> tuple[int, int]:
        """The columns that a stretch touches, the last excluded."""
        return (from_ns - self.start_ns) // self.column_ns, -(
            -(to_ns - self.start_ns) // self.column_ns
        )

    def edges(self, first: int, end: int) -> Numbers:
        """Starts of the cells of these columns, and the end of the last; whole ns, however many
        rows.
        """
        offsets = -(-np.arange(self.rows) * self.column_ns // self.rows)
        starts = self.start_ns + np.arange(first, end) * self.column_ns
        return np.append(np.add.outer(starts, offsets), self.start_ns + end * self.column_ns)


def read_heat_map(
    store: Store,
    from_ns: int,
    to_ns: int,
    selection: Selection = ALL,
    *,
    rows: int = DEFAULT_ROWS,
    column_s: int = 1,
    limit: TimeLimit | None = None,
) -> HeatMap:
    """Columns of `column_s` seconds; a column that the window cuts is known only where the window
    is.
    """
    grid = _grid(from_ns, to_ns, rows, column_s)
    reading = WindowReading(store, from_ns, to_ns, limit or TimeLimit())
    weights = np.zeros(grid.columns * rows, dtype=np.int64)
    left_out: Counter[str] = Counter()
    for pieces, left in reading.segments(lambda reader: _count(reader, reading, selection, grid)):
        for first, counted in pieces:
            weights[first : first + len(counted)] += counted
        left_out += left
    is_known = (weights > 0) | _is_recorded(
        grid.edges(0, grid.columns), reading.recorded(selection.cpus)
    )
    return _heat_map(grid, weights, is_known, reading.left_out(left_out))


def _grid(from_ns: int, to_ns: int, rows: int, column_s: int) -> _Grid:
    if not (1 <= rows <= _MOST_ROWS and 1 <= column_s <= _LONGEST_COLUMN_S):
        facts = f"a heat map of {rows} rows and columns of {column_s} s"
        raise UsageError(
            facts, f"ask for 1 to {_MOST_ROWS} rows and columns of 1 s to {_LONGEST_COLUMN_S} s"
        )
    column_ns = column_s * NS_PER_S
    start_ns = from_ns // column_ns * column_ns
    columns = max(-(-(to_ns - start_ns) // column_ns), 0)
    if columns * rows > _MOST_CELLS:
        raise UsageError(
            f"a heat map of {columns} columns and {rows} rows",
            "ask for fewer rows, longer columns or less time",
        )
    return _Grid(start_ns, column_ns, rows, columns)


_Pieces = list[tuple[int, Numbers]]


def _count(
    reader: SegmentReader, reading: WindowReading, selection: Selection, grid: _Grid
) -> tuple[_Pieces, Counter[str]]:
    """The weights of one segment, each piece from a first cell on."""
    selected = SegmentSelection(reader, selection)
    pieces: _Pieces = []
    left_out: Counter[str] = Counter()
    for span in reading.slices(reader):
        samples = selected.samples(*span, ())
        left_out += samples.left_out
        first, end = grid.columns_of(*span)
        pieces.append((first * grid.rows, _weights_between(grid.edges(first, end), samples)))
    return pieces, left_out


def _weights_between(edges: Numbers, samples: SelectedSamples) -> Numbers:
    """Samples are almost in order of time: to look up a few thousand edges is far quicker than to
    divide each time.
    """
    times, weights = samples.numbers("time"), narrow_numbers(samples.rows, "weight", 1)
    if not is_climbing(times):
        order = np.argsort(times, kind="stable")
        times, weights = times[order], weights[order]
    until = np.zeros(len(weights) + 1, dtype=np.int64)
    np.cumsum(weights, out=until[1:])
    return np.diff(until[np.searchsorted(times, edges)])


def _is_recorded(edges: Numbers, stretches: Sequence[Span]) -> Flags:
    """Cells of which at least half was recorded: along the edges of cells, the time recorded until
    there.
    """
    if not stretches:
        return np.zeros(len(edges) - 1, dtype=np.bool_)
    bounds = np.array(stretches, dtype=np.int64) - edges[0]
    lengths = np.cumsum(bounds[:, 1] - bounds[:, 0])
    until = np.interp(
        edges - edges[0],
        bounds.ravel(),
        np.stack([np.append(0, lengths[:-1]), lengths], axis=1).ravel(),
    )
    found: Flags = np.diff(until) * 2 >= np.diff(edges)
    return found


def _heat_map(grid: _Grid, weights: Numbers, is_known: Flags, left_out: list[str]) -> HeatMap:
    """With the busiest and the quietest of the cells that are known."""
    known = np.flatnonzero(is_known)
    extremes = (
        [int(known[place]) for place in (weights[known].argmax(), weights[known].argmin())]
        if known.size
        else []
    )
    edges = grid.edges(0, grid.columns)
    cells = [
        Cell(k % grid.rows, k // grid.rows, int(edges[k]), int(edges[k + 1]), int(weights[k]))
        for k in extremes
    ]
    shape = (grid.columns, grid.rows)
    return HeatMap(
        np.ascontiguousarray(weights.reshape(shape).T),
        np.ascontiguousarray(is_known.reshape(shape).T),
        weights.reshape(shape).sum(axis=1),
        grid.start_ns,
        grid.column_ns,
        cells[0] if cells else None,
        cells[1] if cells else None,
        int(weights.sum()),
        left_out,
    )
