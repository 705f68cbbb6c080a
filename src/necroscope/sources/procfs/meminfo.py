"""Amounts of memory now: the figures of /proc/meminfo (fs/proc/meminfo.c) that the `memory` table
keeps, in bytes.

`Percpu` exists since 4.19. It matters here: each memory cgroup, dead ones too, holds some of it for
every CPU.
"""

from typing import Final

from necroscope.sources.procfs.named_numbers import NamedNumbers

_BYTES_PER_KB: Final = 1024
_NAMES: Final = {
    "free_bytes": "MemFree:",
    "available_bytes": "MemAvailable:",
    "cached_bytes": "Cached:",
    "dirty_bytes": "Dirty:",
    "writeback_bytes": "Writeback:",
    "anon_bytes": "AnonPages:",
    "shmem_bytes": "Shmem:",
    "slab_bytes": "Slab:",
    "slab_reclaimable_bytes": "SReclaimable:",
    "percpu_bytes": "Percpu:",
    "page_tables_bytes": "PageTables:",
    "kernel_stack_bytes": "KernelStack:",
    "swap_used_bytes": "SwapTotal:",
    "total_bytes": "MemTotal:",
}
COLUMNS: Final = tuple(_NAMES)
_SWAP_USED: Final = COLUMNS.index("swap_used_bytes")


class Meminfo:
    """Parses one kernel's /proc/meminfo again and again: it remembers where the names stand."""

    def __init__(self) -> None:
        self.numbers = NamedNumbers((*_NAMES.values(), "SwapFree:"))

    def parse(self, data: bytes) -> list[int | None]:
        """The values of COLUMNS, None where this kernel does not report it."""
        return self.columns(self.numbers.parse(data))

    def columns(self, numbers: list[int | None]) -> list[int | None]:
        """The values of COLUMNS, given the numbers of all names."""
        *values, swap_free = [kb and kb * _BYTES_PER_KB for kb in numbers]
        swap_total = values[_SWAP_USED]
        values[_SWAP_USED] = (
            None if swap_total is None or swap_free is None else swap_total - swap_free
        )
        return values
