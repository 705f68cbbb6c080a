"""Stacks of a fleet as the call trees that the flame graphs' writers and views know."""

from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from necroscope.fleet.questions.flame import LEFT_OUT
from necroscope.model.frame import Frame
from necroscope.model.units import parse_moment_ns
from necroscope.store.flame import FlameTree
from necroscope.store.flame_frame import GROUP, FrameNumbers
from necroscope.store.forest import merge, totals

_KERNEL_MARK: Final = "_[k]"


def trees(answer: dict[str, Any]) -> tuple[FlameTree, FlameTree | None]:
    """Of the JSON of a `FlameAnswer`: the group's, and the baseline's where there is one. The outermost frame is the process."""
    window = _tree(answer, [(comm, path, samples) for comm, path, samples, _ in answer["stacks"]])
    if answer["baseline"] is None:
        return window, None
    return window, _tree(answer, [(comm, path, baseline) for comm, path, _, baseline in answer["stacks"]])


def _tree(answer: dict[str, Any], stacks: Iterable[tuple[str, str, int]]) -> FlameTree:
    numbering = FrameNumbers()
    node_of: dict[tuple[int, int], int] = {}
    weights: dict[int, int] = {}
    for comm, path, weight in stacks:
        if weight:
            node = -1
            for frame in numbering.of(_frames(comm, path)).tolist():
                node = node_of.setdefault((node, frame), len(node_of))
            weights[node] = weights.get(node, 0) + weight
    keys = np.array(list(node_of) or np.zeros((0, 2)), np.int64).reshape(-1, 2)
    forest, place = merge(keys[:, 0], keys[:, 1])
    own = np.zeros(len(forest.parent), np.int64)
    np.add.at(own, place[list(weights)], list(weights.values()))
    span = parse_moment_ns(answer["from"], 0), parse_moment_ns(answer["to"], 0)
    arrays = forest.parent.astype(np.int32), forest.frame.astype(np.int32), own, totals(forest, own)
    return FlameTree(*arrays, numbering.frames, *span, int(own.sum()), list(answer["left_out"]))


def _frames(comm: str, path: str) -> list[Frame]:
    """What the nodes left out stands alone: nobody knows whose it was."""
    if path == LEFT_OUT:
        return [Frame(LEFT_OUT, "", GROUP, None, None)]
    return [Frame(comm or "[unknown]", "", GROUP, None, None), *map(_frame, path.split(";"))]


def _frame(name: str) -> Frame:
    if name.endswith(_KERNEL_MARK):
        return Frame(name.removesuffix(_KERNEL_MARK), "", "kernel", None, None)
    return Frame(name, "", "user", None, None)
