"""Frames out of a segment's table, and their numbering over segments and windows."""

from collections import defaultdict
from collections.abc import Iterable
from itertools import count
from typing import Any, Final

import numpy as np
import pyarrow as pa

from necroscope.model.frame import Frame
from necroscope.stacks.samples import codes
from necroscope.stacks.tree import Numbers

GROUP: Final = "group"


class FrameNumbers:
    """Numbers frames in the order in which they are first seen; frames are one if all that is known
    of them is the same.
    """

    def __init__(self) -> None:
        self._number_of: defaultdict[Frame, int] = defaultdict(count().__next__)

    def of(self, frames: Iterable[Frame]) -> Numbers:
        """The number of each."""
        return np.fromiter(map(self._number_of.__getitem__, frames), dtype=np.int64)

    @property
    def frames(self) -> list[Frame]:
        return list(self._number_of)


def frames_at(frames: pa.Table, rows: Numbers | None = None) -> list[Frame]:
    """These rows, or all, of the table `frames`."""
    rows = np.arange(frames.num_rows) if rows is None else rows
    return list(map(Frame, *(_values_at(frames.column(name), rows) for name in Frame._fields)))


def _values_at(column: pa.ChunkedArray, rows: Numbers) -> list[Any]:
    """By hand for a dictionary: Arrow's own ways take a step of Python a row, or load all of its
    functions.
    """
    if column.null_count == len(column):
        return [None] * len(rows)
    if not pa.types.is_dictionary(column.type):
        values = column.to_pylist()
        return [values[row] for row in rows.tolist()]
    numbers, texts = codes(column)
    # The last is that of null, which is -1.
    values = [*texts.to_pylist(), None]
    return [values[number] for number in numbers[rows].tolist()]


def first_alike(frames: pa.Table) -> Numbers:
    """For each frame the first row of which the same is known."""
    alike = np.zeros(frames.num_rows, dtype=np.int64)
    first = alike
    for name in Frame._fields:
        numbers, values = codes(frames.column(name))
        _, first, alike = np.unique(
            alike * (len(values) + 1) + numbers + 1, return_index=True, return_inverse=True
        )
    return first[alike]
