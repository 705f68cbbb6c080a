"""Two windows of any length compared: the union of their call trees, with the paths that appear and those that vanish."""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from necroscope.model.frame import Frame
from necroscope.model.units import NS_PER_S
from necroscope.stacks.flame_tree import FlameTree
from necroscope.stacks.frames import FrameNumbers
from necroscope.stacks.merge import merge
from necroscope.stacks.tree import Numbers, Tree


class PerWhat(StrEnum):
    """What a share is of: all samples of its window (0 to 1), or a recorded second, which also shows a load that grew evenly."""

    SAMPLES = "samples"
    SECOND = "second"


@dataclass(frozen=True, slots=True)
class DifferentialTree(Tree):
    """Weights are raw; shares make windows of unequal length comparable."""

    frames: list[Frame]
    window_total: Numbers
    window_self: Numbers
    baseline_total: Numbers
    baseline_self: Numbers
    window_share: NDArray[np.float64]
    baseline_share: NDArray[np.float64]
    per: PerWhat
    left_out: list[str]

    def appeared(self) -> list[int]:
        """Rows where the window leaves all paths of the baseline, the heaviest first; what they call is new too."""
        return self._only_in(self.window_share, self.baseline_total)

    def vanished(self) -> list[int]:
        """Rows where the baseline leaves all paths of the window, the heaviest first."""
        return self._only_in(self.baseline_share, self.window_total)

    def _only_in(self, share: NDArray[np.float64], other: Numbers) -> list[int]:
        caller_is_in_other = np.where(self.parent < 0, True, other[self.parent] > 0)
        nodes = np.flatnonzero((share > 0) & (other == 0) & caller_is_in_other)
        return [int(node) for node in nodes[np.argsort(-share[nodes], kind="stable")]]


def compare(window: FlameTree, baseline: FlameTree, *, per: PerWhat = PerWhat.SAMPLES) -> DifferentialTree:
    numbering = FrameNumbers()
    sides = window, baseline
    frames = [numbering.of(side.frames)[side.frame] for side in sides]
    tree, rows = merge(*(Tree(side.parent, frame) for side, frame in zip(sides, frames, strict=True)))
    window_self, baseline_self = (tree.sums(row, side.self_weight) for row, side in zip(rows, sides, strict=True))
    window_total, baseline_total = tree.totals(window_self), tree.totals(baseline_self)
    return DifferentialTree(
        tree.parent,
        tree.frame,
        numbering.frames,
        window_total,
        window_self,
        baseline_total,
        baseline_self,
        window_total / _whole(window, per),
        baseline_total / _whole(baseline, per),
        per,
        [f"window: {words}" for words in window.left_out] + [f"baseline: {words}" for words in baseline.left_out],
    )


def _whole(tree: FlameTree, per: PerWhat) -> float:
    """A side without anything has no shares, rather than shares of nothing."""
    if per is PerWhat.SAMPLES:
        return tree.samples or 1
    return (tree.recorded_ns or tree.to_ns - tree.from_ns) / NS_PER_S or 1.0
