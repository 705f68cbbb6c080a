"""The flame graph as the page asks for it: of samples or of waits, alone or against a baseline;
laid out, and cut to what can be seen.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from necroscope.model.span import Span
from necroscope.stacks.differential import DifferentialTree, compare
from necroscope.stacks.edges import left_edges
from necroscope.stacks.flame_tree import FlameTree
from necroscope.stacks.tree import compacted
from necroscope.store.choices import GroupBy
from necroscope.store.flame import read_flame
from necroscope.store.query import Store
from necroscope.store.selection import Selection
from necroscope.store.time_limit import TimeLimit
from necroscope.store.wait_flame import read_wait_flame
from necroscope.views.web.answers import Parts, frame_names


class FlameOf(StrEnum):
    """Waits are grouped by program and kind already, and have no callers to turn to."""

    SAMPLES = "samples"
    WAITS = "waits"


@dataclass(frozen=True, slots=True)
class GraphQuestion:
    """Frames narrower than `least_share` of the whole are not sent: a screen cannot show them."""

    window: Span
    baseline: Span | None
    selection: Selection
    by: tuple[GroupBy, ...] = ()
    is_turned: bool = False
    of: FlameOf = FlameOf.SAMPLES
    least_share: float = 0.0


def flame_answer(store: Store, question: GraphQuestion, limit: TimeLimit) -> Parts:
    def read(span: Span) -> FlameTree:
        if question.of is FlameOf.WAITS:
            return read_wait_flame(store, span, question.selection, limit)
        return read_flame(
            store,
            *span,
            question.selection,
            question.by,
            is_turned=question.is_turned,
            limit=limit,
        )

    tree = read(question.window)
    if question.baseline is None:
        return flame_parts(tree, question.least_share)
    other = read(question.baseline)
    return differential_parts(compare(tree, other), tree, other, question.least_share)


def flame_parts(tree: FlameTree, least_share: float = 0.0) -> Parts:
    weights = {"total": tree.total_weight, "self": tree.self_weight}
    return _tree_parts(tree, tree.total_weight, _window(tree), weights, least_share)


def differential_parts(
    tree: DifferentialTree, window: FlameTree, baseline: FlameTree, least_share: float = 0.0
) -> Parts:
    """A frame is as wide as its mean share of both windows, so that what vanished is seen as well
    as what appeared.
    """
    header = _window(window) | {
        f"baseline_{name}": value for name, value in _window(baseline).items()
    }
    weights = {
        f"{prefix}{name}": values
        for prefix, side in (("", tree.window), ("baseline_", tree.baseline))
        for name, values in (("total", side.total), ("self", side.own), ("share", side.share))
    }
    width = (tree.window.share + tree.baseline.share) / 2
    return _tree_parts(tree, width, header, weights, least_share)


def _window(tree: FlameTree) -> dict[str, Any]:
    return {"samples": tree.samples, "from": str(tree.from_ns), "to": str(tree.to_ns)}


def _tree_parts(
    tree: FlameTree | DifferentialTree,
    width: NDArray[Any],
    header: dict[str, Any],
    weights: dict[str, NDArray[Any]],
    least_share: float,
) -> Parts:
    """By depth, then from left to right, so that the page finds by bisection what it draws;
    `left` and `width` are shares of the whole.
    """
    names, kinds = frame_names(tree.frames)
    depth = tree.depths()
    whole = float(width[tree.parent < 0].sum()) or 1.0
    left = left_edges(tree, width, depth, names)
    seen = np.flatnonzero(width >= least_share * whole)
    order = seen[np.lexsort((left[seen], depth[seen]))]
    place = np.full(len(tree) + 1, -1, np.int32)
    place[order] = np.arange(len(order))
    used, name = compacted(tree.frame[order], len(names))
    arrays: dict[str, NDArray[Any]] = {
        "parent": place[tree.parent[order]],
        "name": name.astype(np.int32),
        "kind": kinds[used],
        "left": left[order] / whole,
        "width": width[order] / whole,
    }
    arrays |= {name: values[order].astype(np.float64) for name, values in weights.items()}
    header |= {"frames": len(tree), "left_out": tree.left_out}
    return {"names": [names[number] for number in used.tolist()], **header}, arrays
