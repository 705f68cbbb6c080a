"""Trees made of trees: many merged to one, one split by groups, one turned inside out. Loops go
over levels, never over rows.

    merge      row      0     1     2              0     1            0  |  1     2   |  3
               parent  -1     0     1             -1     0           -1  |  0     0   |  1
               frame   main  read  vfs_read   +   main  work   =     main  read  work   vfs_read
               new row  0     1     3              0     2

    turned     the paths that end in rows 2 and 3 of the result, from the inside out:
               row      0      1      |  2      3   |  4            a root is an innermost frame
               parent  -1     -1      |  0      1   |  3
               frame   work   vfs_read  main   read    main

    split      the same paths, row 3 also in group 1: every group has its own tree
               row      0      1      |  2     3     4   |  5         6
               parent  -1     -2      |  0     0     1   |  2         4
               frame   main   main      read  work  read    vfs_read  vfs_read
                       group 0  1       a root's parent is -1 - group
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np

from necroscope.stacks.tree import LevelTree, Numbers, Tree

_FRAME_BITS: Final = 32


class Grown(NamedTuple):
    """A new tree, and the row in it of each row that was asked for."""

    tree: LevelTree
    row: Numbers


class _Levels:
    """The tree level by level, as it grows."""

    def __init__(self) -> None:
        self.parents: list[Numbers] = [np.zeros(0, dtype=np.int64)]
        self.frames: list[Numbers] = [np.zeros(0, dtype=np.int64)]
        self.starts = [0]

    def add(self, parent: Numbers, frame: Numbers) -> Numbers:
        """A level: rows of the same parent and frame become one. Returns the row of each."""
        keys, place = np.unique((parent + 1) << _FRAME_BITS | frame, return_inverse=True)
        rows: Numbers = self.starts[-1] + place
        self.append((keys >> _FRAME_BITS) - 1, keys & ((1 << _FRAME_BITS) - 1))
        return rows

    def append(self, parent: Numbers, frame: Numbers) -> None:
        self.parents.append(parent)
        self.frames.append(frame)
        self.starts.append(self.starts[-1] + len(frame))

    def tree(self) -> LevelTree:
        return LevelTree(np.concatenate(self.parents), np.concatenate(self.frames), self.starts)


def merge(*trees: Tree) -> tuple[LevelTree, list[Numbers]]:
    """One tree of all paths, and for each tree the new row of each of its rows; frames must be
    numbered over all of them.
    """
    bases = np.cumsum([0, *map(len, trees)])
    parents = [
        np.where(tree.parent < 0, -1, tree.parent + base)
        for tree, base in zip(trees, bases, strict=False)
    ]
    whole = Tree(np.concatenate(parents), np.concatenate([tree.frame for tree in trees]))
    levels = _Levels()
    merged = np.zeros(len(whole) + 1, dtype=np.int64)
    # A root's parent, -1, is the last place: the caller of all roots.
    merged[-1] = -1
    for level in whole.levels():
        merged[level] = levels.add(merged[whole.parent[level]], whole.frame[level])
    return levels.tree(), np.split(merged[:-1], bases[1:-1])


def tree_of(paths: Iterable[Sequence[int]]) -> tuple[Tree, Numbers]:
    """The tree of some paths of frames, root first, and the row in which each of them ends; rows in
    the order first seen.
    """
    rows: dict[tuple[int, int], int] = {}
    ends = []
    for path in paths:
        row = -1
        for frame in path:
            row = rows.setdefault((row, frame), len(rows))
        ends.append(row)
    keys = np.array(list(rows), dtype=np.int64).reshape(-1, 2)
    return Tree(keys[:, 0], keys[:, 1]), np.array(ends, dtype=np.int64)


def turned(tree: Tree, row: Numbers, group: Numbers) -> Grown:
    """The paths that end in `row` from the innermost frame outwards, and where each ends; a root's
    parent is -1 - group.
    """
    levels = _Levels()
    rest, inner, above = np.arange(len(row)), row, group
    found = np.zeros(len(row), dtype=np.int64)
    while rest.size:
        found[rest] = above = levels.add(above, tree.frame[inner])
        inner = tree.parent[inner]
        goes_on = inner >= 0
        rest, inner, above = rest[goes_on], inner[goes_on], above[goes_on]
    levels.parents[1:2] = [-1 - groups for groups in levels.parents[1:2]]
    return Grown(levels.tree(), found)


def split(tree: LevelTree, row: Numbers, group: Numbers) -> Grown:
    """A tree of its own for each group of the paths that end in `row`; a root's parent is -1 -
    group.
    """
    size = max(len(tree), 1)
    depth = np.searchsorted(np.array(tree.starts[1:]), row, side="right")
    order = np.argsort(depth, kind="stable")
    keys_of_rows = (group * size + row)[order]
    bounds = np.searchsorted(depth[order], np.arange(len(tree.starts)))
    levels: list[tuple[Numbers, Numbers]] = []
    place_of_row = np.zeros(len(row), dtype=np.int64)
    above = np.zeros(0, dtype=np.int64)
    # From the innermost level outwards, where what is called has said which callers it needs.
    for level in range(len(tree.starts) - 2, -1, -1):
        own = keys_of_rows[bounds[level] : bounds[level + 1]]
        keys, place = np.unique(np.concatenate([own, above]), return_inverse=True)
        place_of_row[order[bounds[level] : bounds[level + 1]]] = place[: len(own)]
        if levels:
            levels[-1] = levels[-1][0], place[len(own) :]
        above = keys - keys % size + tree.parent[keys % size]
        levels.append((keys, -1 - keys // size))
    grown = _Levels()
    for keys, parent in reversed(levels):
        # Parents were numbered within the level above; of roots they are groups.
        grown.append(
            parent if grown.starts == [0] else parent + grown.starts[-2], tree.frame[keys % size]
        )
    return Grown(grown.tree(), np.array(grown.starts)[depth] + place_of_row)
