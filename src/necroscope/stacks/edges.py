"""Where the frames of a call tree lie from left to right: callees side by side below their caller.

0           10     row      0     1      2      3
[   main     ]     parent  -1     0      0      1
[read][ work ]     weight  10     4      6      4
[vfs ]             left     0     0      4      0
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from necroscope.stacks.tree import Numbers, Tree


def left_edges(
    tree: Tree, weight: NDArray[Any], depth: Numbers, names: Sequence[str]
) -> NDArray[Any]:
    """In steps of the weight; in the order of their names, so that two graphs can be compared."""
    order = tree.by_name(depth, names)
    before = np.cumsum(weight[order]) - weight[order]
    callers = tree.parent[order]
    # Callees of one caller follow each other: from each is taken what came before the first of
    # them.
    is_first = np.append(True, callers[1:] != callers[:-1])[: len(order)]
    within = before - before[is_first][np.cumsum(is_first) - 1]
    left = np.zeros(len(tree) + 1, dtype=weight.dtype)
    for level in np.split(np.arange(len(order)), np.flatnonzero(np.diff(depth[order])) + 1):
        left[order[level]] = left[callers[level]] + within[level]
    return left[:-1]
