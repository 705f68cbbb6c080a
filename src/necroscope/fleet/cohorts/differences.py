"""The facts in which two nodes or two groups of nodes differ, the rarest difference first.

Of two nodes a difference is as rare as two nodes of the fleet, taken at random, having just these
two values. Of groups it is as rare as chance would give one of them this many nodes with the value
(Fisher).
"""

from collections import Counter
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from necroscope.fleet.cohorts import fact_rules
from necroscope.fleet.cohorts.columns import Counts, FactMatrix, Flags
from necroscope.fleet.cohorts.fisher import fisher_greater

_MOST_VALUES: Final = 5
# Of groups: what differs more often by chance is a roll-out under way, or a single odd node.
RARE: Final = 0.05


@dataclass(frozen=True, slots=True)
class Difference:
    """Values with the share of each group's nodes that have them; `rarity` is a probability."""

    kind: str
    name: str
    values_a: tuple[tuple[str | None, float], ...]
    values_b: tuple[tuple[str | None, float], ...]
    rarity: float
    is_place: bool

    def as_json(self) -> dict[str, Any]:
        sides = {
            side: [{"value": value, "share": share} for value, share in values]
            for side, values in self._sides()
        }
        return {
            "kind": self.kind,
            "name": self.name,
            **sides,
            "rarity": self.rarity,
            "is_place": self.is_place,
        }

    def _sides(self) -> list[tuple[str, tuple[tuple[str | None, float], ...]]]:
        return [("a", self.values_a), ("b", self.values_b)]


def find_differences(
    matrix: FactMatrix, is_a: Flags, is_b: Flags, *, with_all: bool
) -> tuple[list[Difference], int, dict[str, int]]:
    pairs = len(matrix.values)
    counts, in_a, in_b = (
        np.bincount(some.ravel(), minlength=pairs)
        for some in (matrix.pair, matrix.pair[:, is_a], matrix.pair[:, is_b])
    )
    rarities = _rarities(matrix, counts, in_a, in_b)
    found, same, left_out = [], 0, Counter[str]()
    for (kind, name), row, rarity, first, last in zip(
        matrix.facts, matrix.pair, rarities, *_bounds(matrix), strict=True
    ):
        reason = (
            None
            if with_all
            else _reason(kind, name, counts[first:last].tolist(), matrix.values[first:last])
        )
        if last - first < 2 or (rarity is None and reason is None):
            same += 1
        elif reason is not None:
            left_out[reason] += 1
        else:
            values_a, values_b = _values(matrix, row[is_a]), _values(matrix, row[is_b])
            found.append(
                Difference(
                    kind,
                    name,
                    values_a,
                    values_b,
                    float(rarity or 0),
                    fact_rules.is_place(kind, name),
                )
            )
    return sorted(found, key=lambda each: (each.rarity, each.kind, each.name)), same, dict(left_out)


def _bounds(matrix: FactMatrix) -> tuple[list[int], list[int]]:
    """The first pair of each fact, and that after its last."""
    numbers = np.arange(len(matrix.facts))
    return tuple(
        np.searchsorted(matrix.fact_of_pair, numbers, side=side).tolist()
        for side in ("left", "right")
    )


def _reason(kind: str, name: str, counts: list[int], values: list[str | None]) -> str | None:
    reason = fact_rules.reason_to_leave_out(kind, name)
    if reason is not None or fact_rules.is_place(kind, name):
        return reason
    having = [
        count for count, value in zip(counts, values, strict=True) if value is not None and count
    ]
    return fact_rules.OWN if fact_rules.has_own_values(len(having), sum(having)) else None


def _rarities(matrix: FactMatrix, counts: Counts, in_a: Counts, in_b: Counts) -> list[float | None]:
    """Of each fact; None where the two are the same."""
    nodes, nodes_a, nodes_b = len(matrix.nodes), _of_first(in_a, matrix), _of_first(in_b, matrix)
    if nodes_a == 1 and nodes_b == 1:
        # Two different values: how often two nodes of all have just these.
        held = [
            (
                np.flatnonzero(in_a[first:last])[0] + first,
                np.flatnonzero(in_b[first:last])[0] + first,
            )
            for first, last in zip(*_bounds(matrix), strict=True)
        ]
        return [
            None if a == b else 2 * float(counts[a]) * float(counts[b]) / (nodes * (nodes - 1))
            for a, b in held
        ]
    both = in_a + in_b
    chances = np.minimum(
        fisher_greater(in_a, both, nodes_a, nodes_a + nodes_b),
        fisher_greater(in_b, both, nodes_b, nodes_a + nodes_b),
    )
    differs = in_a * nodes_b != in_b * nodes_a
    # The more values, the more often one of them looks striking.
    return [
        float(min(1.0, chances[first:last].min() * 2 * np.count_nonzero(both[first:last])))
        if differs[first:last].any()
        else None
        for first, last in zip(*_bounds(matrix), strict=True)
    ]


def _of_first(counts: Counts, matrix: FactMatrix) -> int:
    """Nodes of a side: each has one value of any fact."""
    return int(counts[matrix.fact_of_pair == 0].sum())


def _values(matrix: FactMatrix, pairs: Any) -> tuple[tuple[str | None, float], ...]:
    numbers, counts = np.unique(pairs, return_counts=True)
    order = np.argsort(-counts, kind="stable")[:_MOST_VALUES]
    return tuple(
        (matrix.values[int(numbers[each])], float(counts[each]) / len(pairs)) for each in order
    )
