"""Stacks of a fleet as the call trees that the flame graphs' writers and views know."""

from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from necroscope.fleet.questions.flame import LEFT_OUT
from necroscope.model.frame import Frame
from necroscope.model.units import parse_moment_ns
from necroscope.stacks.flame_tree import FlameTree
from necroscope.stacks.frames import GROUP, FrameNumbers
from necroscope.stacks.merge import merge, tree_of

_KERNEL_MARK: Final = "_[k]"


def trees(answer: dict[str, Any]) -> tuple[FlameTree, FlameTree | None]:
    """Of the JSON of a `FlameAnswer`: the group's, and the baseline's where there is one. The
    outermost frame is the process.
    """
    window = _tree(answer, [(comm, path, samples) for comm, path, samples, _ in answer["stacks"]])
    if answer["baseline"] is None:
        return window, None
    return window, _tree(
        answer, [(comm, path, baseline) for comm, path, _, baseline in answer["stacks"]]
    )


def _tree(answer: dict[str, Any], stacks: Iterable[tuple[str, str, int]]) -> FlameTree:
    numbering = FrameNumbers()
    known = [
        (numbering.of(_frames(comm, path)).tolist(), weight)
        for comm, path, weight in stacks
        if weight
    ]
    interned, ends = tree_of(path for path, _ in known)
    tree, (rows,) = merge(interned)
    weights = np.array([weight for _, weight in known], np.int64)
    span = parse_moment_ns(answer["from"], 0), parse_moment_ns(answer["to"], 0)
    return FlameTree.of(tree, (rows[ends], weights), numbering.frames, span, answer["left_out"])


def _frames(comm: str, path: str) -> list[Frame]:
    """What the nodes left out stands alone: nobody knows whose it was."""
    if path == LEFT_OUT:
        return [Frame(LEFT_OUT, "", GROUP, None, None)]
    return [Frame(comm or "[unknown]", "", GROUP, None, None), *map(_frame, path.split(";"))]


def _frame(name: str) -> Frame:
    if name.endswith(_KERNEL_MARK):
        return Frame(name.removesuffix(_KERNEL_MARK), "", "kernel", None, None)
    return Frame(name, "", "user", None, None)
