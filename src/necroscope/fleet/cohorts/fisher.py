"""One-sided Fisher's exact test of many 2x2 tables at once, and false discovery control over them.

Of `nodes` nodes `affected` failed; `with_it` have a difference, and of those `affected_with`
failed. The test asks how often chance alone would put as many of the affected nodes, or more, among
those that have it (the upper tail of the hypergeometric).

Written by us for its speed: 20,000 tables of 10,000 nodes take 0.04 s here and 0.96 s by
`scipy.stats.hypergeom.sf`, whose import takes another 0.5 s; the results differ by 1e-10 at most.
"""

from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]
# Terms below this share of their sum add nothing that is ever shown.
_NEGLIGIBLE: Final = 1e-12


def fisher_greater(affected_with: Counts, with_it: Counts, affected: int, nodes: int) -> Floats:
    """The chance of each table, or of one that speaks louder. A table that chance must give has
    1.
    """
    first = np.maximum(0, affected + with_it - nodes)
    last = np.minimum(affected, with_it)
    mode = ((with_it + 1) * (affected + 1)) // (nodes + 2)
    is_upper = affected_with > mode
    # Summed from the largest term outwards, so that the sum may end where terms vanish: below the
    # mode that is the other tail.
    start = np.where(is_upper, affected_with, affected_with - 1)
    room = np.where(is_upper, last - affected_with, affected_with - 1 - first)
    tail = _tail(start, room, is_upper, with_it, affected, nodes)
    chance = np.where(is_upper, tail, 1.0 - tail)
    return np.where(affected_with <= first, 1.0, np.clip(chance, 0.0, 1.0))


def log_chance(hits: Any, draws: Any, marked: int, total: int) -> Floats:
    """Logarithm of the hypergeometric chance of `hits` marked ones among `draws` of `total`."""
    logs = log_factorials(total)
    found: Floats = (
        logs[marked]
        - logs[hits]
        - logs[marked - hits]
        + logs[total - marked]
        - logs[draws - hits]
        - logs[total - marked - draws + hits]
        - logs[total]
        + logs[draws]
        + logs[total - draws]
    )
    return found


@lru_cache(maxsize=8)
def log_factorials(most: int) -> Floats:
    """log(0!) to log(most!)."""
    return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, most + 1, dtype=np.float64)))])


def _tail(
    start: Counts,
    room: Counts,
    is_upper: NDArray[np.bool_],
    with_it: Counts,
    affected: int,
    nodes: int,
) -> Floats:
    """The term at `start` and the `room` terms after it, up or down; nothing where there is no
    room.
    """
    total = np.zeros(len(start))
    rows = np.flatnonzero(room >= 0)
    hits = start[rows]
    term = np.exp(log_chance(hits, with_it[rows], affected, nodes))
    step = 0
    while rows.size:
        total[rows] += term
        goes_on = (room[rows] > step) & (term > _NEGLIGIBLE * total[rows])
        rows, hits, term = rows[goes_on], hits[goes_on], term[goes_on]
        up = is_upper[rows]
        # The ratio of neighbours; `low` is the smaller of the two counts of hits.
        low = np.where(up, hits, hits - 1)
        ratio = (
            (affected - low)
            * (with_it[rows] - low)
            / ((low + 1) * (nodes - affected - with_it[rows] + low + 1))
        )
        term = np.where(up, term * ratio, term / ratio)
        hits = np.where(up, hits + 1, hits - 1)
        step += 1
    return total


def false_discovery(chances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of each test the share of false ones to be expected among those that speak at least as loud
    (Benjamini and Hochberg 1995): of thousands of tests some look striking by chance alone.
    """
    count = len(chances)
    if not count:
        return chances
    order = np.argsort(chances, kind="stable")
    adjusted = chances[order] * count / np.arange(1, count + 1)
    found = np.empty(count)
    found[order] = np.minimum(1.0, np.minimum.accumulate(adjusted[::-1])[::-1])
    return found
