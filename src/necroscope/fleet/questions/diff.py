"""`fleet diff A B`: the facts in which two nodes or two groups of nodes differ, the rarest
difference first (see `cohorts.differences`).
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from necroscope.errors import UsageError
from necroscope.fleet.ask import LakeQuestions
from necroscope.fleet.cohorts.differences import Difference, find_differences
from necroscope.fleet.fact_matrix import read_fact_matrix
from necroscope.fleet.lake_tables import NodeKey
from necroscope.fleet.questions.node_choice import NodeIndex
from necroscope.fleet.where import parse
from necroscope.model.span import Span

SCHEMA: Final = 1
_MOST: Final = 1_000


@dataclass(frozen=True, slots=True)
class DiffAnswer:
    """`same` facts are equal; `left_out` ones tell nodes apart, not kinds of nodes."""

    span: Span
    a: str
    b: str
    nodes_a: int
    nodes_b: int
    nodes: int
    differences: tuple[Difference, ...]
    count: int
    same: int
    left_out: dict[str, int]

    def as_json(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            **self.span.as_json(),
            "a": {"name": self.a, "nodes": self.nodes_a},
            "b": {"name": self.b, "nodes": self.nodes_b},
            "nodes": self.nodes,
            "count": self.count,
            "differences": [each.as_json() for each in self.differences],
            "same": self.same,
            "left_out": [
                {"facts": count, "reason": reason} for reason, count in self.left_out.items()
            ],
        }


def diff(
    questions: LakeQuestions, a: str, b: str, span: Span, *, with_all: bool = False
) -> DiffAnswer:
    """A and B are names of nodes, or expressions."""
    known = NodeIndex(questions, span)
    sides = [_side(known, text) for text in (a, b)]
    keys = sorted(known.all())
    moments = dict.fromkeys(keys, span.to_ns - 1)
    matrix = questions.again_if_merged(
        lambda: read_fact_matrix(questions.lake, moments, questions.clusters)
    )
    is_a, is_b = (np.array([key in side for key in keys], np.bool_) for side in sides)
    found, same, left_out = find_differences(matrix, is_a, is_b, with_all=with_all)
    return DiffAnswer(
        span,
        a,
        b,
        len(sides[0]),
        len(sides[1]),
        len(keys),
        tuple(found[:_MOST]),
        len(found),
        same,
        left_out,
    )


def _side(known: NodeIndex, text: str) -> frozenset[NodeKey]:
    """A name wins over an expression: names need no quotes."""
    named = {key for key in known.all() if text in (key[1], f"{key[0]}/{key[1]}")}
    if named:
        return frozenset(named)
    if not any(sign in text for sign in "= ()!"):
        near = sorted(key[1] for key in known.all() if text.lower() in key[1].lower())[:5]
        there = (
            f"nodes like it: {', '.join(near)}"
            if near
            else "see: necroscope fleet nodes; groups are chosen as in zone=a"
        )
        raise UsageError(f"there is no node {text!r}", there)
    found = parse(text).choose(known)
    if not found:
        raise UsageError(
            f"no node is chosen by {text!r}", "see labels with: necroscope fleet nodes"
        )
    return found
