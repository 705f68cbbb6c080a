"""Values that have an order, numbers and versions: `kernel release is at least 6.8.0-1021` is one
difference, of however many values.

    value     6.5.0   6.8.0-9   6.8.0-1018   6.8.0-1021       a cut lies before a value; what is had
    nodes       4        7          9             5           at or above it is the sum of the rest,
    affected    0        0          8             5           and so is its fingerprint
"""

import re
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from necroscope.fleet.cohorts.columns import Counts, FactMatrix, Flags, PairCounts
from necroscope.fleet.cohorts.fisher import fisher_greater

# Of three values any cut is one value against the others, which is asked anyway. Four numbers are
# more often names of states than sizes: cuts through those named a wrong fact in 1 of 400 fleets.
_LEAST_VALUES: Final = 5
_VERSION: Final = re.compile(r"-?\d+(?:\.\d+)?|\d+(?:[.:+~_-][0-9A-Za-z]+)+")
_NUMBER: Final = re.compile(r"-?\d+(?:\.\d+)?")
_PARTS: Final = re.compile(r"\d+|[A-Za-z]+")
_LONGEST: Final = 100

OrderKey = tuple[tuple[int, float, str], ...]


class Cuts(NamedTuple):
    """Of each fact with an order the cut that fits best: `pair` is that of its least value. It was
    chosen among `tried`.
    """

    pair: Counts
    tried: Counts
    with_it: Counts
    affected_with: Counts
    prints: NDArray[np.float64]


def order_key(value: str) -> OrderKey | None:
    """None for what is neither a number nor a version. Numbers compare as numbers, also within a
    version.
    """
    if len(value) > _LONGEST or not _VERSION.fullmatch(value):
        return None
    if _NUMBER.fullmatch(value):
        return ((0, float(value), ""),)
    return tuple(
        (0, float(part), "") if part.isdigit() else (1, 0.0, part) for part in _PARTS.findall(value)
    )


def find_cuts(matrix: FactMatrix, counts: PairCounts, asked: Flags, failed: int) -> Cuts:
    """Of the facts that are asked about."""
    nodes = len(matrix.nodes)
    bounds = np.searchsorted(matrix.fact_of_pair, np.arange(len(matrix.facts) + 1))
    found: list[tuple[int, int, int, int, float]] = []
    for fact in np.flatnonzero(asked & (np.diff(bounds) >= _LEAST_VALUES)).tolist():
        pairs = ordered_pairs(matrix, bounds[fact], bounds[fact + 1], counts)
        if len(pairs) < _LEAST_VALUES:
            continue
        # From the top down: what is had at or above each value but the least.
        at_least = pairs[::-1]
        with_it, affected_with = (
            np.cumsum(each[at_least])[:-1] for each in (counts.with_it, counts.affected_with)
        )
        prints = np.cumsum(counts.prints[at_least])[:-1]
        up = fisher_greater(affected_with, with_it, failed, nodes)
        down = fisher_greater(failed - affected_with, nodes - with_it, failed, nodes)
        best = int(np.argmin(np.minimum(up, down)))
        found.append(
            (
                int(at_least[best]),
                2 * len(with_it),
                int(with_it[best]),
                int(affected_with[best]),
                float(prints[best]),
            )
        )
    pair, tried, with_it, affected_with = (
        np.array([row[column] for row in found], np.int64) for column in range(4)
    )
    return Cuts(
        pair, tried, with_it, affected_with, np.array([row[4] for row in found], np.float64)
    )


def ordered_pairs(matrix: FactMatrix, first: int, end: int, counts: PairCounts) -> Counts:
    """Pairs of a fact by the order of their values; none if a value has no order. A node without
    the fact is on neither side of a cut, so such facts have none either.
    """
    keys: list[tuple[OrderKey, int]] = []
    for pair in range(first, end):
        if not counts.with_it[pair]:
            continue
        value = matrix.values[pair]
        key = None if value is None else order_key(value)
        if key is None:
            return np.zeros(0, np.int64)
        keys.append((key, pair))
    return np.array([pair for _, pair in sorted(keys)], np.int64)


def at_least(matrix: FactMatrix, pair: int) -> Flags:
    """The nodes whose value of the pair's fact is that of the pair or above it."""
    fact = int(matrix.fact_of_pair[pair])
    least = order_key(matrix.values[pair] or "") or ()
    row = matrix.pair[fact]
    first, last = int(row.min()), int(row.max())
    is_above = np.array(
        [
            (key := order_key(matrix.values[each] or "")) is not None and key >= least
            for each in range(first, last + 1)
        ],
        np.bool_,
    )
    return np.asarray(is_above[row - first])
