"""Top functions of a flame graph, and how its samples spread over cores, processes or any other
groups.
"""

from typing import NamedTuple

import numpy as np

from necroscope.model.frame import Frame
from necroscope.stacks.flame_tree import FlameTree
from necroscope.stacks.frames import GROUP
from necroscope.stacks.merge import merge


class FunctionWeight(NamedTuple):
    """`self_weight` is of samples in the function itself, `total_weight` of those in it or below
    it, each sample once.
    """

    frame: Frame
    self_weight: int
    total_weight: int
    self_share: float
    total_share: float


class Part(NamedTuple):
    """A core, process or other group, and the weight of its samples."""

    label: str
    weight: int
    share: float


def top_functions(
    flame: FlameTree, count: int | None = None, *, by_total: bool = False
) -> list[FunctionWeight]:
    """The heaviest functions of a tree that is not turned; a group counts only where a stack ends
    in it, as a wait for a core does.
    """
    tree, (row,) = merge(flame)
    own = tree.sums(row, flame.self_weight)
    total = np.where(tree.is_outermost_of_its_frame(), tree.totals(own), 0)
    sums = np.zeros((2, len(flame.frames)), dtype=np.int64)
    np.add.at(sums[0], tree.frame, own)
    np.add.at(sums[1], tree.frame, total)
    order = np.lexsort((-sums[1 - by_total], -sums[int(by_total)]))
    found = (
        (flame.frames[number], *sums[:, number].tolist())
        for number in order.tolist()
        if sums[1, number]
    )
    functions = [(frame, own, total) for frame, own, total in found if own or frame.kind != GROUP][
        :count
    ]
    whole = flame.samples or 1
    return [
        FunctionWeight(frame, own, total, own / whole, total / whole)
        for frame, own, total in functions
    ]


def parts(tree: FlameTree) -> list[Part]:
    """The roots of a grouped tree, the heaviest first."""
    roots = np.flatnonzero(tree.parent < 0)
    order = roots[np.argsort(-tree.total_weight[roots], kind="stable")]
    whole = tree.samples or 1
    weights = (
        (tree.frames[tree.frame[node]], int(tree.total_weight[node])) for node in order.tolist()
    )
    return [
        Part(frame.function or frame.module, weight, weight / whole) for frame, weight in weights
    ]
