"""Reads the flame graph of a window: of any choice of samples, and in any grouping."""

from collections.abc import Sequence

import numpy as np

from necroscope.model.span import Span
from necroscope.stacks.flame_tree import FlameTree
from necroscope.stacks.merge import Grown, split, turned
from necroscope.stacks.samples import numbers
from necroscope.stacks.tree import LevelTree
from necroscope.store.choices import GroupBy
from necroscope.store.groups import KEYS, GroupTree, group_tree
from necroscope.store.query import Store
from necroscope.store.selection import Selection
from necroscope.store.stack_weights import read_weights
from necroscope.store.time_limit import TimeLimit

ALL = Selection()


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
    """Turned: from the innermost frame to its callers. Cut: paths begin at their outermost frame
    that the selection matches.
    """
    keys = {key for dimension in group_by for key in KEYS[dimension]}
    cut = is_cut and selection.frames is not None
    weights = read_weights(
        store, Span(from_ns, to_ns), selection, keys, limit or TimeLimit(), is_cut=cut
    )
    groups = group_tree(weights.rows, group_by)
    stack, weight = numbers(weights.rows, "stack"), numbers(weights.rows, "weight")
    grown = Grown(weights.tree, stack)
    if is_turned:
        grown = turned(weights.tree, stack, groups.group)
    elif groups.frames:
        grown = split(weights.tree, stack, groups.group)
    tree, row = _under_groups(grown, groups, len(weights.frames))
    frames, recorded = [*weights.frames, *groups.frames], weights.reading.recorded(selection.cpus)
    recorded_ns = sum(end - start for start, end in recorded)
    return FlameTree.of(
        tree, (row, weight), frames, weights.reading.answered(), weights.left_out, recorded_ns
    )


def _under_groups(grown: Grown, groups: GroupTree, first_frame: int) -> Grown:
    """The tree with each root below its group; a root without groups stays one."""
    above, below = groups.tree, grown.tree
    count = len(above)
    is_root = below.parent < 0
    group = groups.row_of_group[np.where(is_root, -1 - below.parent, 0)]
    parent = np.concatenate([above.parent, np.where(is_root, group, below.parent + count)])
    frame = np.concatenate([above.frame + first_frame, below.frame])
    starts = [*above.starts[:-1], *(count + start for start in below.starts)]
    return Grown(LevelTree(parent, frame, starts), grown.row + count)
