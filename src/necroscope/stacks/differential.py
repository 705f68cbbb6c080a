"""Two windows of any length compared: the union of their call trees, with the paths that appear and
those that vanish.
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from necroscope.model.frame import Frame
from necroscope.model.units import NS_PER_S
from necroscope.stacks.flame_tree import FlameTree
from necroscope.stacks.frames import FrameNumbers
from necroscope.stacks.merge import merge
from necroscope.stacks.tree import LevelTree, Numbers, Tree


class PerWhat(StrEnum):
    """What a share is of: all samples of its window (0 to 1), or a recorded second, which also
    shows a load that grew evenly.
    """

    SAMPLES = "samples"
    SECOND = "second"


@dataclass(frozen=True, slots=True)
class Side:
    """What one window says of each row: samples through it, samples of its own, and its share of
    the window.
    """

    total: Numbers
    own: Numbers
    share: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class DifferentialTree(Tree):
    """Weights are raw; shares make windows of unequal length comparable."""

    frames: list[Frame]
    window: Side
    baseline: Side
    per: PerWhat
    left_out: list[str]

    def appeared(self) -> list[int]:
        """Rows where the window leaves all paths of the baseline, the heaviest first; what they
        call is new too.
        """
        return self._only_in(self.window, self.baseline)

    def vanished(self) -> list[int]:
        """Rows where the baseline leaves all paths of the window, the heaviest first."""
        return self._only_in(self.baseline, self.window)

    def _only_in(self, side: Side, other: Side) -> list[int]:
        caller_is_in_other = np.where(self.parent < 0, True, other.total[self.parent] > 0)
        rows = np.flatnonzero((side.share > 0) & (other.total == 0) & caller_is_in_other)
        return [int(row) for row in rows[np.argsort(-side.share[rows], kind="stable")]]


def compare(
    window: FlameTree, baseline: FlameTree, *, per: PerWhat = PerWhat.SAMPLES
) -> DifferentialTree:
    numbering = FrameNumbers()
    flames = window, baseline
    frames = [numbering.of(flame.frames)[flame.frame] for flame in flames]
    tree, rows = merge(
        *(Tree(flame.parent, frame) for flame, frame in zip(flames, frames, strict=True))
    )
    now, before = (_side(tree, row, flame, per) for flame, row in zip(flames, rows, strict=True))
    left_out = [f"window: {words}" for words in window.left_out] + [
        f"baseline: {words}" for words in baseline.left_out
    ]
    return DifferentialTree(tree.parent, tree.frame, numbering.frames, now, before, per, left_out)


def _side(tree: LevelTree, row: Numbers, flame: FlameTree, per: PerWhat) -> Side:
    """A side without anything has no shares, rather than shares of nothing."""
    seconds = (flame.recorded_ns or flame.to_ns - flame.from_ns) / NS_PER_S
    whole = flame.samples if per is PerWhat.SAMPLES else seconds
    own = tree.sums(row, flame.self_weight)
    total = tree.totals(own)
    return Side(total, own, total / (whole or 1))
