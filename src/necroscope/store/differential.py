"""Two windows of any length compared: the union of their call trees, with the paths that appear and those that vanish."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from necroscope.model.frame import Frame
from necroscope.model.units import NS_PER_S
from necroscope.store.flame import ALL, FlameTree, GroupBy, read_flame
from necroscope.store.flame_frame import FrameNumbers
from necroscope.store.forest import Forest, Numbers, merge, totals
from necroscope.store.query import Store
from necroscope.store.selection import Selection
from necroscope.store.time_limit import TimeLimit


class PerWhat(StrEnum):
    """What a share is of: all samples of its window (0 to 1), or a recorded second, which also shows a load that grew evenly."""

    SAMPLES = "samples"
    SECOND = "second"


@dataclass(frozen=True, slots=True)
class DifferentialTree:
    """Weights are raw; shares make windows of unequal length comparable."""

    parent: NDArray[np.int32]
    frame: NDArray[np.int32]
    frames: list[Frame]
    window_total: NDArray[np.int64]
    window_self: NDArray[np.int64]
    baseline_total: NDArray[np.int64]
    baseline_self: NDArray[np.int64]
    window_share: NDArray[np.float64]
    baseline_share: NDArray[np.float64]
    per: PerWhat
    left_out: list[str]

    def appeared(self) -> list[int]:
        """Nodes where the window leaves all paths of the baseline, the heaviest first; what they call is new too."""
        return self._only_in(self.window_share, self.baseline_total)

    def vanished(self) -> list[int]:
        """Nodes where the baseline leaves all paths of the window, the heaviest first."""
        return self._only_in(self.baseline_share, self.window_total)

    def path(self, node: int) -> list[Frame]:
        """Frames from the root to a node."""
        found: list[Frame] = []
        while node >= 0:
            found.append(self.frames[self.frame[node]])
            node = int(self.parent[node])
        return found[::-1]

    def _only_in(self, share: NDArray[np.float64], other: NDArray[np.int64]) -> list[int]:
        caller_is_in_other = np.where(self.parent < 0, True, other[self.parent] > 0)
        nodes = np.flatnonzero((share > 0) & (other == 0) & caller_is_in_other)
        return [int(node) for node in nodes[np.argsort(-share[nodes], kind="stable")]]


def read_differential(
    store: Store,
    window: tuple[int, int],
    baseline: tuple[int, int],
    selection: Selection = ALL,
    group_by: Sequence[GroupBy] = (),
    *,
    per: PerWhat = PerWhat.SAMPLES,
    is_turned: bool = False,
    limit: TimeLimit | None = None,
) -> DifferentialTree:
    """Both windows share one time limit."""
    limit = limit or TimeLimit()
    trees = [read_flame(store, *span, selection, group_by, is_turned=is_turned, limit=limit) for span in (window, baseline)]
    return compare(*trees, per=per)


def compare(window: FlameTree, baseline: FlameTree, *, per: PerWhat = PerWhat.SAMPLES) -> DifferentialTree:
    numbering = FrameNumbers()
    count = len(window.parent)
    frames = [numbering.of(tree.frames)[tree.frame] for tree in (window, baseline)]
    parent = np.concatenate([window.parent, np.where(baseline.parent < 0, -1, baseline.parent + count)]).astype(np.int64)
    forest, node = merge(parent, np.concatenate(frames))
    window_self = _at_nodes(forest, node[:count], window.self_weight)
    baseline_self = _at_nodes(forest, node[count:], baseline.self_weight)
    window_total, baseline_total = totals(forest, window_self), totals(forest, baseline_self)
    return DifferentialTree(
        forest.parent.astype(np.int32),
        forest.frame.astype(np.int32),
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


def _at_nodes(forest: Forest, node: Numbers, weights: Numbers) -> Numbers:
    found = np.zeros(len(forest.parent), dtype=np.int64)
    np.add.at(found, node, weights)
    return found


def _whole(tree: FlameTree, per: PerWhat) -> float:
    """A side without anything has no shares, rather than shares of nothing."""
    if per is PerWhat.SAMPLES:
        return tree.samples or 1
    return (tree.recorded_ns or tree.to_ns - tree.from_ns) / NS_PER_S or 1.0
