"""The tables `stacks` and `frames` of one segment as a tree, whatever a gap has taken out of them
and however deep they are.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from necroscope.stacks.samples import numbers
from necroscope.stacks.tree import LOST, Flags, Numbers, Tree

# A recorder walks 127 frames. A file may say any number, and what goes level by level would take as
# long as it likes.
MOST_FRAMES: Final = 1024
# Stands for the outermost frames of a path that has more.
CUT: Final = "(cut)"


@dataclass(frozen=True, slots=True)
class SegmentTree:
    """A frame of the tree is a row of `frames`."""

    tree: Tree
    frames: pa.Table
    _ids: Numbers
    # Of each row, with one place more; None in a whole segment.
    _is_lost: Flags | None

    def rows(self, ids: Numbers) -> Numbers:
        """Row of each stack id, or LOST."""
        found = _rows_of(ids, self._ids)
        return found if self._is_lost is None else np.where(self._is_lost[found], LOST, found)


def segment_tree(stacks: pa.Table, frames: pa.Table) -> SegmentTree:
    """A stack is lost if its frame or its caller is, or is numbered after it; and so are all that
    it calls.
    """
    ids, parents = numbers(stacks, "stack"), numbers(stacks, "parent")
    tree = Tree(
        _rows_of(parents, ids), _rows_of(numbers(stacks, "frame"), numbers(frames, "frame"))
    )
    is_bad = (tree.frame == LOST) | (parents != -1) & ((tree.parent == LOST) | (parents >= ids))
    is_lost = None
    if is_bad.any():
        tree = Tree(np.where(is_bad, LOST, tree.parent), tree.frame)
        is_lost = np.append(tree.on_path(is_bad), True)
    if _is_deeper(tree, MOST_FRAMES):
        cut = {"frame": -1, "function": CUT, "module": "", "kind": "user"}
        tree = _cut(tree, frames.num_rows)
        frames = pa.concat_tables([frames, pa.Table.from_pylist([cut], frames.schema)])
    return SegmentTree(tree, frames, ids, is_lost)


def _rows_of(wanted: Numbers, ids: Numbers) -> Numbers:
    """Row of each wanted id, or LOST; quick where ids are row numbers, as in a segment without
    damage.
    """
    if (ids == np.arange(len(ids))).all():
        is_known = (wanted >= 0) & (wanted < len(ids))
        return wanted if is_known.all() else np.where(is_known, wanted, LOST)
    order = np.argsort(ids, kind="stable")
    rows = order[np.minimum(np.searchsorted(ids, wanted, sorter=order), len(ids) - 1)]
    return np.where(ids[rows] == wanted, rows, LOST)


def _is_deeper(tree: Tree, most: int) -> bool:
    """Whether a path has more frames. By doubling: `ancestor` is 1, 2, 4, ... callers away."""
    ancestor, away = np.append(tree.parent, LOST).astype(np.int32), 1
    while away < most and (ancestor >= 0).any():
        ancestor, away = ancestor[ancestor], 2 * away
    return bool((ancestor >= 0).any())


def _cut(tree: Tree, cut_frame: int) -> Tree:
    """Deep paths begin again below a row of `cut_frame`, with at least half of the frames that a
    path may have.

    Levels are taken in bands of that half. A row of band 2 or deeper keeps its own band and the one
    outside of it:

        band     0           1           2           3
        rows     a -- b -- c -- d -- e -- f -- g -- h
        stays    a -- b -- c -- d
        copy     cut           c'-- d'-- e -- f
        copy     cut                     e'-- f'-- g -- h

    So a row has at most one copy, which only rows of the band inside of it have as a caller, and
    the work stays linear.
    """
    band = tree.depths() // ((MOST_FRAMES - 1) // 2)
    copied = np.flatnonzero(band >= 1)
    count = len(tree)
    copy_of = np.full(count, LOST, dtype=np.int64)
    copy_of[copied] = count + 1 + np.arange(len(copied))
    begins_band = (tree.parent >= 0) & (band != band[tree.parent])
    parent = np.where(begins_band & (band >= 2), copy_of[tree.parent], tree.parent)
    parent_of_copy = np.where(begins_band, count, copy_of[tree.parent])[copied]
    return Tree(
        np.concatenate([parent, [LOST], parent_of_copy]),
        np.concatenate([tree.frame, [cut_frame], tree.frame[copied]]),
    )
