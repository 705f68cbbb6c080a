"""Weights by stack, name and cgroup, as sorted numbers: Arrow's own grouping takes ten times the
memory for this.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa

from necroscope.stacks.samples import codes, numbers
from necroscope.stacks.tree import Numbers

# Of this many different ones the lightest are none of the heaviest.
_MOST_KEYS: Final = 50_000
_NAME_BITS: Final = 20


class FoldedSamples:
    """Of one segment, whose stacks they are.

    A key is the stack, then the numbers of name and cgroup in the order in which they were first
    seen. `rest` is what was let go.
    """

    def __init__(self) -> None:
        self.keys: Numbers = np.zeros(0, dtype=np.int64)
        self.weights: Numbers = np.zeros(0, dtype=np.int64)
        self.rest = 0
        self._numbers: dict[str, dict[str | None, int]] = {"comm": {}, "cgroup": {}}

    def add(self, rows: pa.Table) -> None:
        keys = numbers(rows, "stack") << 2 * _NAME_BITS
        keys |= self._codes(rows, "comm") << _NAME_BITS | self._codes(rows, "cgroup")
        keys, weights = _sum_by_key(keys, numbers(rows, "weight", 1))
        self.keys, self.weights = _sum_by_key(
            np.concatenate([self.keys, keys]), np.concatenate([self.weights, weights])
        )
        if len(self.keys) > _MOST_KEYS:
            heavy, rest = self.heaviest(_MOST_KEYS // 2)
            heavy.sort()
            self.keys, self.weights, self.rest = (
                self.keys[heavy],
                self.weights[heavy],
                self.rest + rest,
            )

    def heaviest(self, most: int) -> tuple[Numbers, int]:
        """Places of the heaviest keys, and the weight of all others."""
        order = np.argsort(-self.weights, kind="stable")
        return order[:most], int(self.weights[order[most:]].sum())

    def stacks(self, places: Numbers) -> Iterator[tuple[int, str, str | None]]:
        """Stack, name and cgroup of these keys."""
        comms, cgroups = (list(known) for known in self._numbers.values())
        mask = (1 << _NAME_BITS) - 1
        for key in self.keys[places].tolist():
            yield key >> 2 * _NAME_BITS, comms[key >> _NAME_BITS & mask] or "", cgroups[key & mask]

    def _codes(self, rows: pa.Table, name: str) -> Numbers:
        found, texts = codes(rows.column(name))
        known = self._numbers[name]
        # The last is that of null, which is -1.
        number_of = np.array(
            [known.setdefault(text, len(known)) for text in [*texts.to_pylist(), None]],
            dtype=np.int64,
        )
        return number_of[found]


def _sum_by_key(keys: Numbers, weights: Numbers) -> tuple[Numbers, Numbers]:
    order = np.argsort(keys, kind="stable")
    keys, weights = keys[order], weights[order]
    starts = np.flatnonzero(np.diff(keys, prepend=keys[0] - 1))
    return keys[starts], np.add.reduceat(weights, starts)
