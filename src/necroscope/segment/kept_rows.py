"""Decoded rows of sealed segments for a process that reads the same minutes again and again."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Final

import pyarrow as pa

# One that is larger would drive out all others.
_LARGEST: Final = 8


class KeptRows:
    """Bounded in bytes: what was not asked for longest goes first."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._size_bytes = 0
        self._rows: OrderedDict[Hashable, pa.Table] = OrderedDict()

    def find(self, key: Hashable) -> pa.Table | None:
        rows = self._rows.get(key)
        if rows is not None:
            self._rows.move_to_end(key)
        return rows

    def keep(self, key: Hashable, rows: pa.Table) -> None:
        if rows.nbytes > self._most_bytes // _LARGEST:
            return
        self._rows[key] = rows
        self._size_bytes += rows.nbytes
        while self._size_bytes > self._most_bytes:
            self._size_bytes -= self._rows.popitem(last=False)[1].nbytes
