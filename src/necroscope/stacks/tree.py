"""Call trees as arrays, a row for each path, so that a question to all paths at once takes a few
steps of numpy.

    main               row      0      1      2          3
    ├─ read            parent  -1      0      1          0     the caller's row, -1 at a root
    │  └─ vfs_read     frame    5      2      9          4     the number of a frame
    └─ work                    main   read   vfs_read   work

A stack is the row in which it ends: stack 2 is main;read;vfs_read. Rows of a `Tree` may stand in
any order. A `LevelTree` has its rows level by level, siblings side by side, and no path twice:

                       row      0  |   1      2   |  3
                       starts   0      1             3      4
                              main | read   work  | vfs_read
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]
Bits = TypeVar("Bits", np.bool_, np.int64)
# A row that is not there: the caller of a root, or a stack that a gap has taken. As an index it
# finds the last place, so that an array with one place more than the tree has rows answers for it,
# too.
LOST: Final = -1


@dataclass(frozen=True, slots=True)
class Tree:
    parent: Numbers
    frame: Numbers

    def __len__(self) -> int:
        return len(self.parent)

    def paths(self, rows: Iterable[int]) -> Iterator[list[int]]:
        """Of each row the frames from the root to it."""
        # Lists, because numpy takes long for one number at a time.
        parent, frame = self.parent.tolist(), self.frame.tolist()
        for row in rows:
            found, caller = [], row
            while caller >= 0:
                found.append(frame[caller])
                caller = parent[caller]
            yield found[::-1]

    def depths(self) -> Numbers:
        """By doubling: after each round the ancestor is twice as far away."""
        ancestor = self.parent.copy()
        depth = (ancestor >= 0).astype(np.int64)
        rest = np.flatnonzero(depth)
        while rest.size:
            above = ancestor[rest]
            depth[rest] += depth[above]
            ancestor[rest] = farther = ancestor[above]
            rest = rest[farther >= 0]
        return depth

    def levels(self) -> Sequence[Numbers | slice]:
        """The rows of each depth, from the roots inward."""
        depth = self.depths()
        return (
            np.split(np.argsort(depth, kind="stable"), np.cumsum(np.bincount(depth))[:-1])
            if len(depth)
            else []
        )

    def on_path(self, flags: NDArray[Bits]) -> NDArray[Bits]:
        """Whether a row or one of its callers has the flag; of several flags as bits, which."""
        ancestor, found = self.parent.copy(), flags.copy()
        rest = np.flatnonzero(ancestor >= 0)
        while rest.size:
            above = ancestor[rest]
            found[rest] |= found[above]
            ancestor[rest] = farther = ancestor[above]
            rest = rest[farther >= 0]
        return found

    def with_callers(self, rows: Numbers) -> Numbers:
        """These rows but LOST, and all that lead to them, in order."""
        used = np.zeros(len(self) + 1, dtype=np.bool_)
        used[rows] = True
        # So that the caller of a root is known already, and no row of the tree.
        used[LOST] = True
        new = np.flatnonzero(used[:-1])
        place = np.zeros(len(used), dtype=np.int64)
        while new.size:
            new = self.parent[new]
            new = new[~used[new]]
            # Of a caller that is there many times one stays: else it would be looked at once for
            # each row below it.
            number = np.arange(new.size)
            place[new] = number
            new = new[place[new] == number]
            used[new] = True
        return np.flatnonzero(used[:-1])

    def pruned(self, rows: Numbers) -> tuple["Tree", Numbers]:
        """Only these rows and their callers; and the new row of each old one, with a place more for
        LOST.
        """
        used = self.with_callers(rows)
        new = np.full(len(self) + 1, LOST, dtype=np.int64)
        new[used] = np.arange(len(used))
        return Tree(new[self.parent[used]], self.frame[used]), new

    def sums(self, rows: Numbers, weights: NDArray[Any]) -> NDArray[Any]:
        """The weights that end in each row of the tree."""
        found: NDArray[Any] = np.zeros(len(self), dtype=weights.dtype)
        np.add.at(found, rows, weights)
        return found

    def totals(self, weights: NDArray[Any]) -> NDArray[Any]:
        """Of each row its own weight and that of all below."""
        total = weights.copy()
        for level in reversed(self.levels()[1:]):
            np.add.at(total, self.parent[level], total[level])
        return total

    def by_name(self, depth: Numbers, names: Sequence[str]) -> Numbers:
        """The rows level by level, callees of one caller side by side in the order of their frames'
        names.
        """
        rank = np.zeros(len(names), dtype=np.int64)
        rank[sorted(range(len(names)), key=names.__getitem__)] = np.arange(len(names))
        # One number for all three, which a lexsort takes four times as long for: with two million
        # rows, as many names and a depth of a thousand it still has its 63 bits.
        callers = depth * (len(self) + 1) + self.parent + 1
        return np.argsort(callers * len(names) + rank[self.frame], kind="stable")


@dataclass(frozen=True, slots=True)
class LevelTree(Tree):
    """Level i is `starts[i]` to `starts[i + 1]`."""

    starts: list[int]

    def levels(self) -> list[slice]:
        return [slice(start, end) for start, end in zip(self.starts, self.starts[1:], strict=False)]

    def is_outermost_of_its_frame(self) -> Flags:
        """False where a caller is the same function: recursion, whose samples the caller has
        counted already.

        Depth first a subtree is a stretch; of the stretches of one frame those are inner that begin
        before an earlier one ends.
        """
        first, size = self._stretches()
        order = np.lexsort((first, self.frame))
        base = self.frame[order] * (len(self) + 1)
        ends = np.maximum.accumulate(base + first[order] + size[order])
        is_outer = np.ones(len(self), dtype=np.bool_)
        is_outer[order[1:]] = (base + first[order])[1:] >= ends[:-1]
        return is_outer

    def _stretches(self) -> tuple[Numbers, Numbers]:
        """Number of each row counted depth first, and the rows in its subtree."""
        size = self.totals(np.ones(len(self), dtype=np.int64))
        first = np.zeros(len(self), dtype=np.int64)
        for level in self.levels():
            parent = self.parent[level]
            before = np.cumsum(size[level]) - size[level]
            eldest = np.searchsorted(parent, parent)
            first[level] = before - before[eldest] + np.where(parent >= 0, first[parent] + 1, 0)
        return first, size


def compacted(numbers: Numbers, count: int) -> tuple[Numbers, Numbers]:
    """Of numbers below `count` the different ones in order, and the place of each among them."""
    is_used = np.zeros(count, dtype=np.bool_)
    is_used[numbers] = True
    return np.flatnonzero(is_used), (np.cumsum(is_used) - 1)[numbers]
