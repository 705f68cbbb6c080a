"""An agent reads the mappings of a program that has a hundred thousand of them.

What it does: a database maps a small piece of memory for each of its segments and protects every
other one, so that no two are merged. An agent reads its /proc/PID/smaps every moment, as memory
profilers and some exporters do. The kernel walks the tree of mappings and the page table of each.

Seen in the wild: Elasticsearch and MongoDB with max_map_count raised to 262,144; process exporters
that read smaps (procfs, cadvisor's referenced memory); fs/proc/task_mmu.c.

What must be seen: one core in system mode in `show_smap` and below it; memory mappings (slab cache
vm_area_struct) that grow; the program that maps. The twin reads smaps of a small program as hard.
"""

import ctypes
import mmap
from typing import Final

from necroscope.lab.actor import Actor
from necroscope.lab.stage import Stage
from necroscope.lab.state_walk import StateWalk, growing

_PAGE_BYTES: Final = mmap.PAGESIZE
_READ_ONLY: Final = 1
_MOST: Final = 200_000
_libc: Final = ctypes.CDLL(None, use_errno=True)


def keep_mappings(first: int, more_per_s: float, directory: str) -> None:
    """Protects every other page, so that the kernel merges no two mappings."""
    area = mmap.mmap(-1, _MOST * _PAGE_BYTES)
    start = ctypes.addressof(ctypes.c_char.from_buffer(area))
    for number in growing(first, more_per_s, directory):
        if number % 2 == 0:
            place = ctypes.c_void_p(start + number * _PAGE_BYTES)
            if _libc.mprotect(place, _PAGE_BYTES, _READ_ONLY):
                raise OSError(ctypes.get_errno(), "cannot map more")


class MappingWalk(StateWalk):
    name = "mapping-walk"
    twin = "mapping-walk-few"
    population = ("slab:vm_area_struct",)
    first, more_per_s = 50_000, 3_000

    def prepare(self, stage: Stage) -> None:
        stage.set_file("/proc/sys/vm/max_map_count", 400_000)
        super().prepare(stage)

    def start_maker(self, stage: Stage, first: int, more_per_s: int) -> Actor:
        return stage.start(
            keep_mappings, first, more_per_s, str(stage.scratch), cpu=stage.other_cores
        )

    def start_walker(self, stage: Stage) -> Actor:
        return self.start_reader(stage, f"/proc/{self.maker.pid}/smaps")
