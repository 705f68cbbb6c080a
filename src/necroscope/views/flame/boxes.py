"""Where each frame of a call tree is drawn; what is too narrow or too deep to be seen is left out
and counted.

    0           10     box      0    1    2     3      4       box 0 is all of the window
    [   all      ]     parent  -1    0    1     1      2
    [   main     ]     depth    0    1    2     2      3
    [read][ work ]     left     0    0    0     4      0
    [vfs ]             width   10   10    4     6      4       by depth, then from left to right
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from necroscope.model.frame import Frame
from necroscope.stacks.differential import DifferentialTree, Side
from necroscope.stacks.edges import left_edges
from necroscope.stacks.flame_tree import FlameTree
from necroscope.stacks.tree import compacted
from necroscope.views.format import literal

ALL: Final = "all"
# Shares are drawn on a ruler of this many steps, so that widths of a differential are whole numbers
# too.
_RULER: Final = 1_000_000_000
# A change of share below this is none: a thousandth of the window.
_NO_CHANGE: Final = 0.001


class BoxChange(IntEnum):
    SAME = 0
    GREW = 1
    SHRANK = 2
    NEW = 3
    GONE = 4


class Name(NamedTuple):
    """A frame as it is shown."""

    text: str
    module: str
    kind: str


@dataclass(frozen=True, slots=True)
class Cut:
    """What is not drawn: frames, and the weight of the outermost of them, which still counts in
    their callers.
    """

    frames: int
    weight: int


@dataclass(frozen=True, slots=True)
class Boxes:
    """Boxes by depth, then from left to right; box 0 is all of the window. `left` and `width` are
    in steps of `ruler`.
    """

    parent: NDArray[np.int64]
    name: NDArray[np.int64]
    depth: NDArray[np.int64]
    left: NDArray[np.int64]
    width: NDArray[np.int64]
    ruler: int
    names: list[Name]
    window: Side
    baseline: Side | None
    change: NDArray[np.int64]
    cut: Cut

    def __len__(self) -> int:
        return len(self.parent)


def boxes_of(tree: FlameTree, least_share: float, deepest: int) -> Boxes:
    total = int(tree.self_weight.sum())
    share = tree.total_weight / max(total, 1)
    window = Side(tree.total_weight, tree.self_weight, share)
    change = np.zeros(len(tree.parent), dtype=np.int64)
    return _place(tree, tree.total_weight, window, None, change, least_share, deepest)


def differential_boxes(tree: DifferentialTree, least_share: float, deepest: int) -> Boxes:
    """Widths are the mean of both shares: so what vanished has a width too, and callers are as wide
    as what they call.
    """
    window, baseline = tree.window, tree.baseline
    mean = (window.share + baseline.share) / 2
    # 1 where shares are of samples; where they are rates, the rate of all.
    whole = float(mean[tree.parent == -1].sum()) or 1.0
    widths = np.floor(mean / whole * _RULER).astype(np.int64)
    change = _change(window, baseline, _NO_CHANGE * whole)
    return _place(tree, widths, window, baseline, change, least_share, deepest)


def _change(window: Side, baseline: Side, least: float) -> NDArray[np.int64]:
    difference = window.share - baseline.share
    grew_or_shrank = np.where(
        difference > least,
        BoxChange.GREW,
        np.where(difference < -least, BoxChange.SHRANK, BoxChange.SAME),
    )
    gone = np.where((window.total == 0) & (baseline.total > 0), BoxChange.GONE, grew_or_shrank)
    return np.where((baseline.total == 0) & (window.total > 0), BoxChange.NEW, gone).astype(
        np.int64
    )


def _place(
    tree: FlameTree | DifferentialTree,
    weight: NDArray[np.int64],
    window: Side,
    baseline: Side | None,
    change: NDArray[np.int64],
    least_share: float,
    deepest: int,
) -> Boxes:
    # One place more: the parent -1 of the outermost is the box of all.
    parent, frame = tree.parent, tree.frame
    ruler = max(int(weight[parent == -1].sum()), 1)
    depth = tree.depths() + 1
    drawn = (weight >= max(least_share * ruler, 1)) & (depth <= deepest)
    left = left_edges(tree, weight, depth, [frame.name for frame in tree.frames])
    order = np.flatnonzero(drawn)
    order = order[np.lexsort((left[order], depth[order]))]
    place = np.zeros(len(parent) + 1, dtype=np.int64)
    place[order] = np.arange(1, len(order) + 1)
    cut_at = ~drawn & np.append(drawn, True)[parent]
    used, name = compacted(frame[order], len(tree.frames))
    return Boxes(
        np.append(-1, place[parent[order]]),
        np.append(len(used), name).astype(np.int64),
        np.append(0, depth[order]),
        np.append(0, left[order]),
        np.append(ruler, weight[order]),
        ruler,
        [*(shown(tree.frames[number]) for number in used.tolist()), Name(ALL, "", "group")],
        _side(window, parent, order),
        None if baseline is None else _side(baseline, parent, order),
        np.append(BoxChange.SAME, change[order]),
        Cut(int((~drawn).sum()), int(window.total[cut_at].sum())),
    )


def _side(side: Side, parent: NDArray[np.int64], order: NDArray[np.int64]) -> Side:
    total = int(side.total[parent == -1].sum())
    whole = float(side.share[parent == -1].sum())
    return Side(
        np.append(total, side.total[order]),
        np.append(0, side.own[order]),
        np.append(whole, side.share[order]),
    )


def shown(frame: Frame) -> Name:
    """A nameless frame is its module and offset, by which a symboliser can still find it."""
    return Name(literal(frame.name), literal(frame.module), frame.kind)
