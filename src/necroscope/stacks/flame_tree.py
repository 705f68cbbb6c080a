"""The flame graph of a window: who called whom, weighed by samples."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from necroscope.model.frame import Frame
from necroscope.model.span import Span
from necroscope.stacks.tree import LevelTree, Numbers, Tree


@dataclass(frozen=True, slots=True)
class FlameTree(Tree):
    """A frame of the tree is one of `frames`; `from_ns` and `to_ns` are the part of the window that
    could be answered.

    A row's own weight is that of the samples whose path ends in it: whose innermost frame it is, or
    outermost if turned. `left_out` says in words what the answer does not contain; `recorded_ns` is
    the time in it that has no gap.
    """

    self_weight: Numbers
    total_weight: Numbers
    frames: list[Frame]
    from_ns: int
    to_ns: int
    samples: int
    left_out: list[str]
    recorded_ns: int = 0

    @classmethod
    def of(
        cls,
        tree: LevelTree,
        weights: tuple[Numbers, Numbers],
        frames: list[Frame],
        span: Span,
        left_out: Sequence[str],
        recorded_ns: int = 0,
    ) -> Self:
        """`weights` are rows of the tree, and the weight that ends in each."""
        own = tree.sums(*weights)
        return cls(
            tree.parent,
            tree.frame,
            own,
            tree.totals(own),
            frames,
            *span,
            int(own.sum()),
            list(left_out),
            recorded_ns,
        )
