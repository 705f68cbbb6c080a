"""The flame graph of a window: who called whom, weighed by samples, for any choice of samples and in any grouping."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from necroscope.model.frame import Frame
from necroscope.store.forest import Forest, Grown, Numbers, split, totals, turned
from necroscope.store.groups import KEYS, GroupBy, GroupTree, group_tree
from necroscope.store.query import Store
from necroscope.store.selection import Selection
from necroscope.store.stack_weights import StackWeights, read_weights
from necroscope.store.time_limit import TimeLimit

__all__ = ["FlameTree", "GroupBy", "read_flame"]

ALL = Selection()


@dataclass(frozen=True, slots=True)
class FlameTree:
    """A tree of frames; `from_ns` and `to_ns` are the part of the window that could be answered.

    A node's own weight is that of the samples whose path ends in it: whose innermost frame it is, or outermost if turned.
    `left_out` says in words what the answer does not contain; `recorded_ns` is the time in it that has no gap.
    """

    parent: NDArray[np.int32]
    frame: NDArray[np.int32]
    self_weight: NDArray[np.int64]
    total_weight: NDArray[np.int64]
    frames: list[Frame]
    from_ns: int
    to_ns: int
    samples: int
    left_out: list[str]
    recorded_ns: int = 0


def read_flame(
    store: Store,
    from_ns: int,
    to_ns: int,
    selection: Selection = ALL,
    group_by: Sequence[GroupBy] = (),
    *,
    is_turned: bool = False,
    is_cut: bool = False,
    limit: TimeLimit | None = None,
) -> FlameTree:
    """Turned: from the innermost frame to its callers. Cut: paths begin at their outermost frame that the selection matches."""
    keys = {key for dimension in group_by for key in KEYS[dimension]}
    cut = is_cut and selection.frames is not None
    weights = read_weights(store, (from_ns, to_ns), selection, keys, limit or TimeLimit(), is_cut=cut)
    groups = group_tree(weights.rows, group_by)
    return _flame_tree(weights, groups, _grown(weights, groups, is_turned), selection.cpus)


def _grown(weights: StackWeights, groups: GroupTree, is_turned: bool) -> Grown:
    if is_turned:
        return turned(weights.forest, weights.node, groups.group)
    return split(weights.forest, weights.node, groups.group) if groups.frames else Grown(weights.forest, weights.node)


def _flame_tree(weights: StackWeights, groups: GroupTree, grown: Grown, cpus: frozenset[int] | None) -> FlameTree:
    forest, node = _under_groups(grown, groups, len(weights.frames))
    own = np.zeros(len(forest.parent), dtype=np.int64)
    np.add.at(own, node, weights.weight)
    from_ns, to_ns = weights.reading.answered()
    return FlameTree(
        forest.parent.astype(np.int32),
        forest.frame.astype(np.int32),
        own,
        totals(forest, own),
        [*weights.frames, *groups.frames],
        from_ns,
        to_ns,
        int(weights.weight.sum()),
        weights.left_out,
        sum(end - start for start, end in weights.reading.recorded(cpus)),
    )


def _under_groups(grown: Grown, groups: GroupTree, first_frame: int) -> tuple[Forest, Numbers]:
    """The forest with each root below its group; a root without groups stays one."""
    above, below = groups.forest, grown.forest
    count = len(above.parent)
    is_root = below.parent < 0
    group = groups.node_of_group[np.where(is_root, -1 - below.parent, 0)]
    parent = np.concatenate([above.parent, np.where(is_root, group, below.parent + count)])
    frame = np.concatenate([above.frame + first_frame, below.frame])
    return Forest(parent, frame, [*above.starts[:-1], *(count + start for start in below.starts)]), grown.node + count
