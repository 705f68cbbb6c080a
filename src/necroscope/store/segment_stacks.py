"""Stacks and frames of one segment as arrays, whatever a gap has taken out of them."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from necroscope.segment.reader import SegmentReader
from necroscope.store.forest import Numbers, on_path

# Of a sample: its stack, or a part of it, is in a gap.
LOST: Final = -1


@dataclass(frozen=True, slots=True)
class SegmentStacks:
    """`parent` is a row of these arrays, -1 at the outermost; `frame` a row of `frames`. A parent stands before its children."""

    parent: Numbers
    frame: Numbers
    frames: pa.Table
    # Ids in order and, for each, its row or LOST; None where ids are row numbers and nothing is lost, as in a whole segment.
    _ids: Numbers | None = None
    _rows: Numbers | None = None

    def rows(self, ids: Numbers) -> Numbers:
        """Row of each stack id, or LOST."""
        if self._ids is None or self._rows is None:
            return np.where((ids >= 0) & (ids < len(self.parent)), ids, LOST)
        return np.append(self._rows, LOST)[_places(ids, self._ids)]


def read_stacks(reader: SegmentReader) -> SegmentStacks:
    stacks, frames = reader.read("stacks", 0, 0), reader.read("frames", 0, 0)
    ids, parents = numbers(stacks, "stack"), numbers(stacks, "parent")
    frame_rows = _rows_of(numbers(stacks, "frame"), numbers(frames, "frame"))
    row_numbers = np.arange(len(ids))
    is_whole = (ids == row_numbers).all() and (parents >= -1).all() and (parents < row_numbers).all() and (frame_rows >= 0).all()
    return SegmentStacks(parents, frame_rows, frames) if is_whole else _repaired(ids, parents, frame_rows, frames)


def _repaired(ids: Numbers, parents: Numbers, frame_rows: Numbers, frames: pa.Table) -> SegmentStacks:
    """A stack is lost if its frame or its caller is, or comes after it; and so are all that it calls."""
    order = np.argsort(ids, kind="stable")
    ids, parents, frame_rows = ids[order], parents[order], frame_rows[order]
    parent_rows = _places(parents, ids)
    is_bad = (frame_rows == LOST) | ((parents != -1) & ((parent_rows == LOST) | (parent_rows >= np.arange(len(ids)))))
    parent_rows = np.where(is_bad | (parents == -1), -1, parent_rows)
    is_lost = on_path(parent_rows, is_bad)
    rows = np.where(is_lost, LOST, np.arange(len(ids)))
    return SegmentStacks(parent_rows, frame_rows, frames, ids, rows)


def numbers(rows: pa.Table, column: str, missing: int = -3) -> Numbers:
    """A column of numbers; a null becomes `missing`, by default an id that nothing has."""
    return narrow_numbers(rows, column, missing).astype(np.int64, copy=False)


def narrow_numbers(rows: pa.Table, column: str, missing: int = -3) -> NDArray[np.signedinteger[Any]]:
    """As stored, for columns of very many rows of which only some are looked at: to widen takes as long as to read."""
    values = rows.column(column)
    found: NDArray[np.signedinteger[Any]] = (values.fill_null(missing) if values.null_count else values).to_numpy()
    return found


def _rows_of(wanted: Numbers, ids: Numbers) -> Numbers:
    """Row of each wanted id, or LOST; quick where ids are row numbers, as in a segment without damage."""
    if (ids == np.arange(len(ids))).all():
        return np.where((wanted >= 0) & (wanted < len(ids)), wanted, LOST)
    order = np.argsort(ids, kind="stable")
    return np.append(order, LOST)[_places(wanted, ids[order])]


def _places(wanted: Numbers, ids: Numbers) -> Numbers:
    """Place of each wanted id in the sorted ids, or LOST."""
    if not len(ids):
        return np.full(len(wanted), LOST, dtype=np.int64)
    places = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
    return np.where(ids[places] == wanted, places, LOST)
