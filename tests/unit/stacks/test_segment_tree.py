"""Stacks of a segment out of which a gap has taken rows."""

import time

import numpy as np
import pyarrow as pa
import pytest

from necroscope.model.tables import TABLES
from necroscope.segment.arrow import batch_from_rows, empty
from necroscope.stacks.merge import merge
from necroscope.stacks.segment_tree import CUT, MOST_FRAMES, SegmentTree, segment_tree
from necroscope.stacks.tree import LOST, Tree


def segment(stacks: list[tuple], frames: list[int]) -> SegmentTree:
    frame_rows = [(frame, f"f{frame}", "m", "user", None, None) for frame in frames]
    return segment_tree(_table("stacks", stacks), _table("frames", frame_rows))


def _table(name: str, rows: list[tuple]) -> pa.Table:
    return (
        pa.Table.from_batches([batch_from_rows(TABLES[name], rows)])
        if rows
        else empty(TABLES[name])
    )


def paths(found: SegmentTree, ids: list[int]) -> list[list[str] | None]:
    names = found.frames.column("function").to_pylist()
    return [
        [names[frame] for frame in path] or None
        for path in found.tree.paths(found.rows(np.array(ids)).tolist())
    ]


WHOLE = [(0, -1, 0), (1, 0, 1), (2, 1, 2), (3, -1, 1)]


@pytest.mark.parametrize("stacks", [WHOLE, WHOLE[::-1], [WHOLE[1], WHOLE[3], WHOLE[0], WHOLE[2]]])
def test_rows_may_be_in_any_order(stacks):
    found = segment(stacks, [2, 0, 1])
    assert paths(found, [0, 1, 2, 3, 9, -1]) == [
        ["f0"],
        ["f0", "f1"],
        ["f0", "f1", "f2"],
        ["f1"],
        None,
        None,
    ]


def test_a_stack_whose_caller_or_frame_is_in_a_gap_is_lost_and_all_below_it():
    without_caller = segment([WHOLE[0], WHOLE[2], WHOLE[3]], [0, 1, 2])
    assert paths(without_caller, [0, 1, 2, 3]) == [["f0"], None, None, ["f1"]]
    without_frame = segment(WHOLE, [0, 2])
    assert paths(without_frame, [0, 1, 2, 3]) == [["f0"], None, None, None]
    nothing = segment([], [])
    assert nothing.rows(np.array([0, 5])).tolist() == [LOST, LOST]


def test_a_circle_of_callers_is_lost():
    found = segment([(0, 1, 0), (1, 0, 0), (2, 2, 0), (3, -1, 0), (2_000_000_000, 3, 0)], [0])
    assert paths(found, [0, 1, 2, 3, 2_000_000_000]) == [None, None, None, ["f0"], ["f0", "f0"]]


def deep(count: int, frames: int) -> SegmentTree:
    """One path, in which frames come in turns; each of its stacks may be a sample's."""
    return segment(
        [(stack, stack - 1, stack % frames) for stack in range(count)], list(range(frames))
    )


def test_a_path_as_deep_as_allowed_is_whole():
    (path,) = paths(deep(MOST_FRAMES, 7), [MOST_FRAMES - 1])
    assert path == [f"f{number % 7}" for number in range(MOST_FRAMES)]


def test_a_deeper_path_is_cut_at_its_outer_end_and_says_so():
    count = 5 * MOST_FRAMES
    found = paths(deep(count, 7), list(range(count)))
    for stack, path in enumerate(found):
        whole = [f"f{number % 7}" for number in range(stack + 1)]
        assert path == whole or (
            path[0] == CUT
            and path[1:] == whole[1 - len(path) :]
            and len(path) > MOST_FRAMES / 2 - 1
        )
        assert len(path) <= MOST_FRAMES
    assert sum(path[0] == CUT for path in found) == count - 2 * ((MOST_FRAMES - 1) // 2)


def test_what_was_cut_is_not_cut_again():
    once = deep(3 * MOST_FRAMES, 7)
    tree, frames = (
        once.tree,
        once.frames.set_column(0, "frame", pa.array(range(once.frames.num_rows), pa.int32())),
    )
    merged, _ = merge(tree)
    rows = zip(range(len(merged)), merged.parent.tolist(), merged.frame.tolist(), strict=True)
    again = segment_tree(_table("stacks", list(rows)), frames)
    assert again.frames.column("function").to_pylist().count(CUT) == 1
    assert len(again.tree) == len(merged)


def test_of_a_hostile_segment_only_the_lost_stacks_are_lost_however_deep():
    rows = [(stack, stack - 1, 0) for stack in range(2 * MOST_FRAMES)]
    found = segment([*rows[:1500], (1500, 1499, 99), *rows[1501:]], [0])
    assert [len(path or []) for path in paths(found, [1499, 1500, 1501, 9999])] == [
        1500 - 511 + 1,
        0,
        0,
        0,
    ]


def test_work_is_bounded_for_a_stack_of_240_000_callers():
    """A bundle of 2.4 KB holds it, and whoever opened that waited for 35 s: what goes level by
    level takes its time by levels.
    """
    count = 240_000
    number = np.arange(count)
    columns = [pa.array(values, pa.int32()) for values in (number, number - 1, np.zeros(count))]
    stacks = pa.table(columns, schema=empty(TABLES["stacks"]).schema)
    began_s = time.process_time()
    found = segment_tree(stacks, _table("frames", [(0, "f0", "m", "user", None, None)]))
    pruned, _ = found.tree.pruned(found.rows(number))
    merged, _ = merge(pruned)
    assert time.process_time() - began_s < 5
    assert len(pruned) <= 2 * count + 1
    assert len(merged.levels()) <= MOST_FRAMES


def test_a_caller_of_very_many_is_looked_at_once():
    """Else each of its 1,500,000 callees would walk all of its 1,000 callers."""
    callers, callees = 1000, 1_500_000
    tree = Tree(
        np.append(np.arange(-1, callers - 1), np.full(callees, callers - 1)),
        np.arange(callers + callees),
    )
    began_s = time.process_time()
    assert len(tree.with_callers(np.arange(callers, callers + callees))) == callers + callees
    assert time.process_time() - began_s < 1
