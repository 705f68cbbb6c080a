"""A sorted table of address ranges with the place of each name: what kallsyms, an ELF file and the vdso have in common."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

Addresses = npt.NDArray[np.uint64]
Offsets = npt.NDArray[np.uint32]
Ranks = npt.NDArray[np.uint8]

ADDRESS_END: Final = 1 << 64
_SIZE_MAX: Final = (1 << 32) - 1
# A function may lie inside another's range (asm entry points): so many earlier starts are asked whether they reach the address.
_LOOK_BACK: Final = 8


def as_addresses(values: Sequence[int]) -> Addresses:
    """Numbers no address can be become 0, which no symbol covers."""
    return np.array([value if 0 <= value < ADDRESS_END else 0 for value in values], np.uint64)


class SymbolTable:
    """16 bytes a symbol; names stay where they are (a string table, a file) and are fetched by offset."""

    __slots__ = ("_names", "_sizes", "_starts")

    def __init__(self, starts: Addresses, sizes: Addresses, limits: Addresses, names: Offsets, ranks: Ranks) -> None:
        """Of symbols with one start that of the lowest rank stays; size 0 reaches to the next start, but not past its limit."""
        order = np.lexsort((ranks, starts))
        starts = starts[order]
        is_first = np.ones(len(starts), bool)
        is_first[1:] = starts[1:] != starts[:-1]
        order, self._starts = order[is_first], starts[is_first]
        sizes, limits = sizes[order], limits[order]
        following = np.append(self._starts[1:], np.uint64(ADDRESS_END - 1))
        to_next = np.maximum(np.minimum(following, limits), self._starts) - self._starts
        self._sizes = np.minimum(np.where(sizes == 0, to_next, sizes), _SIZE_MAX).astype(np.uint32)
        self._names = names[order]

    def __len__(self) -> int:
        return len(self._starts)

    @property
    def size_bytes(self) -> int:
        return self._starts.nbytes + self._sizes.nbytes + self._names.nbytes

    def find(self, addresses: Sequence[int]) -> list[int | None]:
        """Offset of the name of the innermost symbol around each address."""
        return [offset if offset >= 0 else None for offset in self.places(as_addresses(addresses)).tolist()]

    def places(self, wanted: Addresses) -> npt.NDArray[np.int64]:
        """The same for many addresses at once, -1 where there is none."""
        nearest = np.searchsorted(self._starts, wanted, "right") - 1
        found = np.full(len(wanted), -1, np.int64)
        for back in range(_LOOK_BACK):
            candidate = nearest - back
            open_ones = np.flatnonzero((found < 0) & (candidate >= 0))
            if not len(open_ones):
                break
            candidate = candidate[open_ones]
            covers = wanted[open_ones] - self._starts[candidate] < self._sizes[candidate]
            found[open_ones[covers]] = self._names[candidate[covers]]
        return found
