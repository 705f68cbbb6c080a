"""Call trees as arrays of parents and frames, a parent before its children: loops go over levels, never over nodes."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]
_FRAME_BITS = 32


@dataclass(frozen=True, slots=True)
class Forest:
    """Nodes level by level from the outermost, siblings side by side; level i is `starts[i]` to `starts[i + 1]`."""

    parent: Numbers
    frame: Numbers
    starts: list[int]

    def levels(self) -> list[slice]:
        return [slice(start, end) for start, end in zip(self.starts, self.starts[1:], strict=False)]


class Grown(NamedTuple):
    """A forest made anew, and the node in it of each row that was asked for."""

    forest: Forest
    node: Numbers


def depths(parent: Numbers) -> Numbers:
    """By doubling: after each round the ancestor is twice as far away."""
    ancestor = parent.copy()
    depth = (parent >= 0).astype(np.int64)
    rest = np.flatnonzero(depth)
    while rest.size:
        above = ancestor[rest]
        depth[rest] += depth[above]
        ancestor[rest] = farther = ancestor[above]
        rest = rest[farther >= 0]
    return depth


def on_path(parent: Numbers, flags: Flags) -> Flags:
    """Whether a node or one of its callers has the flag."""
    ancestor, found = parent.copy(), flags.copy()
    rest = np.flatnonzero(parent >= 0)
    while rest.size:
        above = ancestor[rest]
        found[rest] |= found[above]
        ancestor[rest] = farther = ancestor[above]
        rest = rest[farther >= 0]
    return found


def with_callers(parent: Numbers, nodes: Numbers) -> Flags:
    """These nodes and all that leads to them."""
    used = np.zeros(len(parent), dtype=np.bool_)
    while nodes.size:
        used[nodes] = True
        nodes = parent[nodes]
        nodes = nodes[nodes >= 0]
        nodes = nodes[~used[nodes]]
    return used


def merge(parent: Numbers, frame: Numbers) -> Grown:
    """Nodes with the same path become one; `node` is the merged number of each."""
    depth = depths(parent)
    order = np.argsort(depth, kind="stable")
    ends = np.cumsum(np.bincount(depth)) if len(depth) else np.zeros(0, dtype=np.int64)
    merged = np.zeros(len(parent) + 1, dtype=np.int64)
    # A root's parent, -1, is the last place: the caller of all roots.
    merged[-1] = -1
    parents: list[Numbers] = []
    frames: list[Numbers] = []
    starts, start = [0], 0
    for end in ends.tolist():
        level = order[start:end]
        keys, place = np.unique(_key(merged[parent[level]], frame[level]), return_inverse=True)
        merged[level] = starts[-1] + place
        _append(keys, parents, frames, starts)
        start = end
    return Grown(Forest(_joined(parents), _joined(frames), starts), merged[:-1])


def split(forest: Forest, node: Numbers, group: Numbers) -> Grown:
    """A tree of its own for each group of the rows that end in `node`; a root's parent is -1 - group."""
    size = max(len(forest.parent), 1)
    depth = np.searchsorted(np.array(forest.starts[1:]), node, side="right")
    rows = np.argsort(depth, kind="stable")
    row_keys = (group * size + node)[rows]
    bounds = np.searchsorted(depth[rows], np.arange(len(forest.starts)))
    levels: list[tuple[Numbers, Numbers]] = []
    place_of_row = np.zeros(len(node), dtype=np.int64)
    above = np.zeros(0, dtype=np.int64)
    for level in range(len(forest.starts) - 2, -1, -1):
        own = row_keys[bounds[level] : bounds[level + 1]]
        keys, place = np.unique(np.concatenate([own, above]), return_inverse=True)
        place_of_row[rows[bounds[level] : bounds[level + 1]]] = place[: len(own)]
        if levels:
            levels[-1] = levels[-1][0], place[len(own) :]
        caller = forest.parent[keys % size]
        above = keys - keys % size + caller
        levels.append((keys, -1 - keys // size))
    return _numbered(forest, levels[::-1], place_of_row, depth, size)


def _numbered(forest: Forest, levels: list[tuple[Numbers, Numbers]], place_of_row: Numbers, depth: Numbers, size: int) -> Grown:
    """Nodes of all levels one after the other; parents were numbered within the level above."""
    starts = [0, *np.cumsum([len(keys) for keys, _ in levels]).tolist()]
    parents = [parent + (starts[i - 1] if i else 0) for i, (_, parent) in enumerate(levels)]
    frames = [forest.frame[keys % size] for keys, _ in levels]
    return Grown(Forest(_joined(parents), _joined(frames), starts), np.array(starts)[depth] + place_of_row)


def turned(forest: Forest, node: Numbers, group: Numbers) -> Grown:
    """The same paths from the innermost frame outwards; a root's parent is -1 - group, a row's node is where its path ends."""
    rows, pointer, above = np.arange(len(node)), node, group
    found = np.zeros(len(node), dtype=np.int64)
    parents: list[Numbers] = []
    frames: list[Numbers] = []
    starts = [0]
    while rows.size:
        keys, place = np.unique(_key(above, forest.frame[pointer]), return_inverse=True)
        above = starts[-1] + place
        found[rows] = above
        _append(keys, parents, frames, starts)
        pointer = forest.parent[pointer]
        goes_on = pointer >= 0
        rows, pointer, above = rows[goes_on], pointer[goes_on], above[goes_on]
    if parents:
        parents[0] = -1 - parents[0]
    return Grown(Forest(_joined(parents), _joined(frames), starts), found)


def totals(forest: Forest, weights: Numbers) -> Numbers:
    """Of each node its own weight and that of all below."""
    total = weights.copy()
    for level in reversed(forest.levels()[1:]):
        np.add.at(total, forest.parent[level], total[level])
    return total


def is_outermost_of_its_frame(forest: Forest) -> Flags:
    """False where a caller is the same function: recursion, whose samples the caller has counted already.

    Depth first a subtree is a stretch; of the stretches of one frame those are inner that begin before an earlier one ends.
    """
    first, size = _stretches(forest)
    nodes = len(first)
    order = np.lexsort((first, forest.frame))
    base = forest.frame[order] * (nodes + 1)
    ends = np.maximum.accumulate(base + first[order] + size[order])
    is_outer = np.ones(nodes, dtype=np.bool_)
    is_outer[order[1:]] = (base + first[order])[1:] >= ends[:-1]
    return is_outer


def _stretches(forest: Forest) -> tuple[Numbers, Numbers]:
    """Number of each node counted depth first, and the nodes in its subtree."""
    size = totals(forest, np.ones(len(forest.parent), dtype=np.int64))
    first = np.zeros(len(forest.parent), dtype=np.int64)
    for level in forest.levels():
        parent = forest.parent[level]
        before = np.cumsum(size[level]) - size[level]
        eldest = np.searchsorted(parent, parent)
        first[level] = before - before[eldest] + np.where(parent >= 0, first[parent] + 1, 0)
    return first, size


def _key(parent: Numbers, frame: Numbers) -> Numbers:
    return (parent + 1) << _FRAME_BITS | frame


def _append(keys: Numbers, parents: list[Numbers], frames: list[Numbers], starts: list[int]) -> None:
    parents.append((keys >> _FRAME_BITS) - 1)
    frames.append(keys & ((1 << _FRAME_BITS) - 1))
    starts.append(starts[-1] + len(keys))


def _joined(parts: list[Numbers]) -> Numbers:
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
