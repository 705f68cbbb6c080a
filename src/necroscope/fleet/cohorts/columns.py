"""Facts of many nodes as one matrix of small numbers, and how often each value goes with a failure:
one pass, no column built.

    pair[fact, node]       n0   n1   n2         pair          0     1     2     3
    0  label zone           0    1    0         fact_of_pair  0     0     1     1
    1  unit x               2    3    2         values        "a"   "b"   "on"  None

A pair is a fact and one of its values; not having the fact is a value too (None). The pairs of a
fact are numbered side by side. Pairs 0 and 2 are had by the same nodes, n0 and n2: they are one
difference, whatever they are called. They are known by a fingerprint, the sum of random numbers of
the nodes that have it.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Flags = NDArray[np.bool_]
Counts = NDArray[np.int64]
Fact = tuple[str, str]
# Cells counted at a time: a chunk and its weights stay in the processor's cache and cost no memory.
_CHUNK_CELLS: Final = 1 << 17
# Sums of this many bits are exact in a float64, whatever their order.
_EXACT_BITS: Final = 53


@dataclass(frozen=True, slots=True)
class FactMatrix:
    """`pair[fact, node]` is the pair that the node has; `values` are those of the pairs, None where
    a node lacks the fact.
    """

    nodes: list[str]
    facts: list[Fact]
    pair: NDArray[np.int32]
    fact_of_pair: NDArray[np.int32]
    values: list[str | None]

    def has(self, pair: int) -> Flags:
        return np.asarray(self.pair[self.fact_of_pair[pair]] == pair)


@dataclass(frozen=True, slots=True)
class PairCounts:
    """Of each pair: the nodes that have it, the affected ones among them, and a fingerprint of who
    they are.

    Pairs with the same three are the same nodes: a fingerprint has 39 bits for 10,000 nodes.
    `whole` is that of all nodes.
    """

    with_it: Counts
    affected_with: Counts
    prints: NDArray[np.float64]
    whole: float


def count_pairs(matrix: FactMatrix, affected: Flags) -> PairCounts:
    nodes, pairs = len(matrix.nodes), len(matrix.values)
    bits = _EXACT_BITS - max(nodes, 1).bit_length()
    numbers = np.random.default_rng(0).integers(0, 1 << bits, nodes).astype(np.float64)
    with_it, affected_with = np.zeros(pairs, np.int64), np.zeros(pairs, np.int64)
    prints = np.zeros(pairs)
    failed = np.flatnonzero(affected)
    step = max(1, _CHUNK_CELLS // max(nodes, 1))
    for start in range(0, len(matrix.facts), step):
        # Node by node, as a matrix out of the lake lies in memory.
        rows = matrix.pair[start : start + step].T
        # The pairs of a fact stand side by side, so a chunk of facts is a stretch of pairs.
        first, last = int(rows.min(initial=pairs)), int(rows.max(initial=-1)) + 1
        if first >= last:
            continue
        cells = (rows - first).astype(np.intp).ravel()
        width = last - first
        with_it[first:last] += np.bincount(cells, minlength=width)
        affected_with[first:last] += np.bincount((rows[failed] - first).ravel(), minlength=width)
        prints[first:last] += np.bincount(
            cells, weights=np.repeat(numbers, rows.shape[1]), minlength=width
        )
    return PairCounts(with_it, affected_with, prints, float(numbers.sum()))


def matrix_of(nodes: list[str], columns: dict[Fact, list[str | None]]) -> FactMatrix:
    """From the values of each fact, one per node."""
    pair = np.zeros((len(columns), len(nodes)), np.int32)
    fact_of_pair: list[int] = []
    values: list[str | None] = []
    for fact, column in enumerate(columns.values()):
        number = {value: len(values) + place for place, value in enumerate(dict.fromkeys(column))}
        pair[fact] = [number[value] for value in column]
        values += number
        fact_of_pair += [fact] * len(number)
    return FactMatrix(nodes, list(columns), pair, np.array(fact_of_pair, np.int32), values)
