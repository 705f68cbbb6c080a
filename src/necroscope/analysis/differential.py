"""What is new on a core: weights by function path in the incident and in quiet time; what appears and vanishes counts."""

from collections import defaultdict
from dataclasses import dataclass
from typing import Final

import numpy as np

from necroscope.analysis.stacks import Stacks

_HEAVIEST: Final = 400
_LEAST_CHANGE: Final = 0.05
# A path goes on inward as long as its callee has so much of the change.
_MAIN_BRANCH: Final = 0.6
Path = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PathChange:
    """A path, outermost function first, and its shares of the core's time: in the incident and in quiet time."""

    path: tuple[str, ...]
    now: float
    before: float

    @property
    def is_new(self) -> bool:
        return self.before < 0.1 * self.now


@dataclass(frozen=True, slots=True)
class Differential:
    """Paths that came or grew, and paths that vanished or shrank, those that changed most first."""

    grown: tuple[PathChange, ...]
    shrunk: tuple[PathChange, ...]


def compared(now: Stacks, before: Stacks, limit: int = 3) -> Differential:
    """Both must be of the same call tree. Below different callers in user code the kernel's own paths are the same."""
    weights: dict[Path, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for side, stacks in enumerate((now, before)):
        for path, share in _paths(stacks):
            for end in range(1, len(path) + 1):
                weights[path[:end]][side] += share
    grown = _frontier(weights, 1.0, limit)
    shrunk = _frontier(weights, -1.0, limit)
    name = now.tree.names.name

    def told(path: Path) -> PathChange:
        return PathChange(tuple(name(function) for function in path), *weights[path])

    return Differential(tuple(map(told, grown)), tuple(map(told, shrunk)))


def _paths(stacks: Stacks) -> list[tuple[Path, float]]:
    """The kernel's part of each stack, or all of it if it is in user code, with its share of the time."""
    found, place = np.unique(stacks.columns.stack, return_inverse=True)
    weights = np.bincount(place, weights=stacks.columns.weight, minlength=len(found))
    is_kernel = stacks.tree.names.is_kernel()
    paths = []
    for row in np.argsort(-weights, kind="stable")[:_HEAVIEST]:
        whole = [function for function in stacks.tree.path(int(found[row])) if function >= 0]
        kernel = [function for function in whole if is_kernel[function]]
        share = float(weights[row]) * stacks.period_s / stacks.elapsed_s if stacks.elapsed_s else 0.0
        paths.append((tuple(kernel or whole), share))
    return paths


def _frontier(weights: dict[Path, list[float]], sign: float, limit: int) -> list[Path]:
    """From each outermost function that changed inward to where the change spreads over several callees."""

    def change(path: Path) -> float:
        return sign * (weights[path][0] - weights[path][1])

    callees: dict[Path, list[Path]] = defaultdict(list)
    for path in weights:
        callees[path[:-1]].append(path)
    found = []
    for start in sorted(callees[()], key=change, reverse=True)[: 2 * limit]:
        path = start
        while callees[path]:
            inner = max(callees[path], key=change)
            if change(inner) < _MAIN_BRANCH * change(path):
                break
            path = inner
        if change(path) >= _LEAST_CHANGE:
            found.append(path)
    return sorted(found, key=change, reverse=True)[:limit]
