"""What is new on a core: weights by function path in the incident and in quiet time; what appears
and vanishes counts.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from necroscope.analysis.main_path import callees_of, inner_end, without_skid
from necroscope.analysis.stacks import Stacks
from necroscope.stacks.merge import tree_of
from necroscope.stacks.tree import LOST, Tree

_HEAVIEST: Final = 400
_LEAST_CHANGE: Final = 0.05
# A path goes on inward as long as its callee has this much of the change.
_MAIN_BRANCH: Final = 0.6


@dataclass(frozen=True, slots=True)
class PathChange:
    """A path, outermost function first, and its shares of the core's time: in the incident and in
    quiet time.
    """

    path: tuple[str, ...]
    now: float
    before: float


@dataclass(frozen=True, slots=True)
class Differential:
    """Paths that came or grew, and paths that vanished or shrank, those that changed most first."""

    grown: tuple[PathChange, ...]
    shrunk: tuple[PathChange, ...]


def compare_stacks(now: Stacks, before: Stacks, limit: int = 3) -> Differential:
    """Both must be of the same call tree. Below different callers in user code the kernel's own
    paths are the same.
    """
    sides = [_paths(stacks) for stacks in (now, before)]
    tree, ends = tree_of(path for side in sides for path, _ in side)
    ends_of_sides = ends[: len(sides[0])], ends[len(sides[0]) :]
    shares = [
        tree.totals(tree.sums(rows, np.array([share for _, share in side], dtype=np.float64)))
        for rows, side in zip(ends_of_sides, sides, strict=True)
    ]

    def changes(rows: list[int]) -> tuple[PathChange, ...]:
        names = ([now.tree.names.name(function) for function in path] for path in tree.paths(rows))
        pairs = ([float(share[row]) for share in shares] for row in rows)
        return tuple(
            PathChange(tuple(without_skid(path)), *pair)
            for path, pair in zip(names, pairs, strict=True)
        )

    change = shares[0] - shares[1]
    return Differential(
        changes(_frontier(tree, change, limit)), changes(_frontier(tree, -change, limit))
    )


def _paths(stacks: Stacks) -> list[tuple[list[int], float]]:
    """The kernel's part of each stack, or all of it if it is in user code, with its share of the
    time.
    """
    is_kernel = stacks.tree.names.is_kernel()
    paths = []
    for whole, weight in stacks.heaviest_paths(_HEAVIEST):
        share = weight * stacks.period_s / stacks.elapsed_s if stacks.elapsed_s else 0.0
        paths.append(([function for function in whole if is_kernel[function]] or whole, share))
    return [(path, share) for path, share in paths if path]


def _frontier(tree: Tree, change: NDArray[np.float64], limit: int) -> list[int]:
    """From each outermost function that changed inward to where the change spreads over several
    callees.
    """
    callees = callees_of(tree)
    outermost = sorted(callees[LOST], key=change.__getitem__, reverse=True)[: 2 * limit]
    ends = [inner_end(callees, change, row, _MAIN_BRANCH) for row in outermost]
    found = [row for row in ends if change[row] >= _LEAST_CHANGE]
    return sorted(found, key=change.__getitem__, reverse=True)[:limit]
