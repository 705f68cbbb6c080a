"""Stacks of a segment out of which a gap has taken rows."""

import numpy as np
import pyarrow as pa
import pytest

from necroscope.model.tables import TABLES
from necroscope.segment.arrow import batch_from_rows, empty
from necroscope.store.segment_stacks import LOST, read_stacks


class Reader:
    def __init__(self, stacks: list[tuple], frames: list[int]) -> None:
        frame_rows = [(frame, f"f{frame}", "m", "user", None, None) for frame in frames]
        self._tables = {name: _table(name, rows) for name, rows in (("stacks", stacks), ("frames", frame_rows))}

    def read(self, name: str, _from_ns: int, _to_ns: int) -> pa.Table:
        return self._tables[name]


def _table(name: str, rows: list[tuple]) -> pa.Table:
    return pa.Table.from_batches([batch_from_rows(TABLES[name], rows)]) if rows else empty(TABLES[name])


def paths(stacks, ids: list[int]) -> list[list[str] | None]:
    names = stacks.frames.column("function").to_pylist()

    def path(row: int) -> list[str]:
        return [*path(stacks.parent[row]), names[stacks.frame[row]]] if row >= 0 else []

    return [path(row) or None for row in stacks.rows(np.array(ids)).tolist()]


WHOLE = [(0, -1, 0), (1, 0, 1), (2, 1, 2), (3, -1, 1)]


@pytest.mark.parametrize("stacks", [WHOLE, WHOLE[::-1], [WHOLE[1], WHOLE[3], WHOLE[0], WHOLE[2]]])
def test_rows_may_be_in_any_order(stacks):
    found = read_stacks(Reader(stacks, [2, 0, 1]))
    assert paths(found, [0, 1, 2, 3, 9, -1]) == [["f0"], ["f0", "f1"], ["f0", "f1", "f2"], ["f1"], None, None]
    assert (found.parent < np.arange(len(found.parent))).all()


def test_a_stack_whose_caller_or_frame_is_in_a_gap_is_lost_and_all_below_it():
    without_caller = read_stacks(Reader([WHOLE[0], WHOLE[2], WHOLE[3]], [0, 1, 2]))
    assert paths(without_caller, [0, 1, 2, 3]) == [["f0"], None, None, ["f1"]]
    without_frame = read_stacks(Reader(WHOLE, [0, 2]))
    assert paths(without_frame, [0, 1, 2, 3]) == [["f0"], None, None, None]
    nothing = read_stacks(Reader([], []))
    assert nothing.rows(np.array([0, 5])).tolist() == [LOST, LOST]


def test_a_circle_of_callers_is_lost():
    found = read_stacks(Reader([(0, 1, 0), (1, 0, 0), (2, 2, 0), (3, -1, 0), (2_000_000_000, 3, 0)], [0]))
    assert paths(found, [0, 1, 2, 3, 2_000_000_000]) == [None, None, None, ["f0"], ["f0", "f0"]]
