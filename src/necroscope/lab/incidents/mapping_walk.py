"""An agent reads the mappings of a program that has a hundred thousand of them.

What it does: a database maps a small piece of memory for each of its segments and protects every
other one, so that no two are merged. An agent reads its /proc/PID/smaps every moment, as memory
profilers and some exporters do. The kernel walks the tree of mappings and the page table of each.

Seen in the wild: Elasticsearch and MongoDB with max_map_count raised to 262,144; process exporters
that read smaps (procfs, cadvisor's referenced memory); fs/proc/task_mmu.c.

What must be seen: one core in system mode in `show_smap` and below it; memory mappings (slab cache
vm_area_struct) that grow; the program that maps. The twin reads smaps of a small program as hard.
"""

from necroscope.lab.actor import Actor
from necroscope.lab.mappings import keep_mappings
from necroscope.lab.stage import Stage
from necroscope.lab.state_walk import StateWalk


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
