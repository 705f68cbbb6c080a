"""Numbers by 64-bit keys, found by the ten thousand: a hash table with open addressing, made of two numpy arrays.

Ours because a dict takes a step of Python and 100 bytes a key, and to sort what is nearly all known takes longer than to find it.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

Keys = npt.NDArray[np.uint64]
Numbers = npt.NDArray[np.int32]

UNKNOWN: Final = -1
_FREE: Final = 0
_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)
_FIRST_BITS: Final = 12


class NumberIndex:
    """At most half of the places are taken; a key whose place is taken by another goes to the next one that is free."""

    def __init__(self) -> None:
        self.clear()

    def __len__(self) -> int:
        return self._count

    def clear(self) -> None:
        self._count = 0
        self._make_places(_FIRST_BITS)

    def find(self, keys: Keys) -> Numbers:
        """The number of each key, or UNKNOWN."""
        places = self._first_places(keys)
        found = self._entries[places]
        missed = np.flatnonzero((self._keys[places] != keys) & (found != _FREE))
        while len(missed):
            places[missed] = at = places[missed] + 1 & self._mask
            found[missed] = entries = self._entries[at]
            missed = missed[(self._keys[at] != keys[missed]) & (entries != _FREE)]
        return found - np.int32(1)

    def add(self, keys: Keys, numbers: Numbers) -> None:
        """Keys that are all different and not known yet; numbers from 0 on."""
        self._count += len(keys)
        if 2 * self._count > len(self._keys):
            taken = np.flatnonzero(self._entries)
            before = self._keys[taken], self._entries[taken] - np.int32(1)
            self._make_places((2 * self._count).bit_length())
            self._insert(*before)
        self._insert(keys, numbers)

    def _make_places(self, bits: int) -> None:
        self._keys = np.zeros(1 << bits, np.uint64)
        # A number and one, so that an untouched page, which is zero and takes no memory, is free.
        self._entries = np.zeros(1 << bits, np.int32)
        self._mask = (1 << bits) - 1
        self._shift = np.uint64(64 - bits)

    def _first_places(self, keys: Keys) -> npt.NDArray[np.int64]:
        return (keys * _FACTOR >> self._shift).view(np.int64)

    def _insert(self, keys: Keys, numbers: Numbers) -> None:
        places = self._first_places(keys)
        waiting = np.arange(len(keys))
        while len(waiting):
            at = places[waiting]
            is_free = self._entries[at] == _FREE
            # Of several keys for one place the last that is written has it.
            self._keys[at[is_free]] = keys[waiting[is_free]]
            has_it = is_free & (self._keys[at] == keys[waiting])
            self._entries[at[has_it]] = numbers[waiting[has_it]] + 1
            waiting = waiting[~has_it]
            places[waiting] = places[waiting] + 1 & self._mask
