"""Events of the memory manager: the names of /proc/vmstat (mm/vmstat.c) that tell the causes apart.

`allocstall` is split by zone since 4.10 and `workingset_refault` by kind since 5.9: each is the sum
of what is there. `numa_pages_migrated` needs CONFIG_NUMA_BALANCING, the `thp_` names
CONFIG_TRANSPARENT_HUGEPAGE.
"""

from typing import Final

from necroscope.model.tables import TABLES
from necroscope.sources.procfs.named_numbers import NamedNumbers

_TABLE: Final = TABLES["memory"]
COLUMNS: Final = tuple(
    column.name
    for column in _TABLE.columns[_TABLE.index_of("elapsed_ns") + 1 : _TABLE.index_of("free_bytes")]
)
_SUMS: Final = {
    "allocstall": (
        "allocstall_dma",
        "allocstall_dma32",
        "allocstall_normal",
        "allocstall_movable",
        "allocstall_device",
    ),
    "workingset_refault": ("workingset_refault_anon", "workingset_refault_file"),
}
_SUM_PLACES: Final = tuple((COLUMNS.index(column), len(parts)) for column, parts in _SUMS.items())


class Vmstat:
    """Parses one kernel's /proc/vmstat again and again: it remembers where the names stand."""

    def __init__(self) -> None:
        parts = tuple(part for parts in _SUMS.values() for part in parts)
        self.numbers = NamedNumbers((*COLUMNS, *parts))

    def parse(self, data: bytes) -> list[int | None]:
        """The values of COLUMNS since boot, None where this kernel does not count them."""
        return self.columns(self.numbers.parse(data))

    def columns(self, values: list[int | None]) -> list[int | None]:
        """Those of COLUMNS, or their rises, given the numbers of all names."""
        at = len(COLUMNS)
        for column, parts in _SUM_PLACES:
            present = [value for value in values[at : at + parts] if value is not None]
            at += parts
            if present:
                values[column] = sum(present)
        return values[: len(COLUMNS)]
