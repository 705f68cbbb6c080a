"""An agent freezes and thaws a subtree that has tens of thousands of living cgroups.

What it does: a batch system makes a cgroup for each task and removes none. An agent writes to
cgroup.freeze of their parent every moment, as a runtime does that pauses a pod. The kernel walks
all descendants, which are alive: these are not zombies.

Seen in the wild: kubernetes #64137 and Azure/AKS #750 (directories left by systemd), Alibaba ACK
(182,000 living cgroups, kubelet walks them); kernel/cgroup/freezer.c.

What must be seen: one core in system mode in `cgroup_freeze_write` and `css_next_descendant_pre`
below a write; cgroups that grow; the batch system.
"""

import os
from pathlib import Path

from necroscope.lab.actor import Actor
from necroscope.lab.scenario import CannotProvoke
from necroscope.lab.stage import Stage
from necroscope.lab.state_walk import StateWalk, ask_again, growing


def make_cgroups(parent: str, first: int, more_per_s: float, directory: str) -> None:
    for number in growing(first, more_per_s, directory):
        os.mkdir(f"{parent}/{number}")


def freeze_again(parent: str, slice_s: float, pause_s: float, log: str) -> None:
    file = os.open(f"{parent}/cgroup.freeze", os.O_WRONLY)

    def freeze_and_thaw() -> None:
        os.pwrite(file, b"1", 0)
        os.pwrite(file, b"0", 0)

    ask_again(freeze_and_thaw, slice_s, pause_s, log)


class CgroupFreeze(StateWalk):
    name = "cgroup-freeze"
    twin = "cgroup-freeze-few"
    population = ("cgroups", "slab:kernfs_node_cache")
    first, more_per_s = 12_000, 500
    slice_s = 0.3

    def start_maker(self, stage: Stage, first: int, more_per_s: int) -> Actor:
        mounts = map(str.split, Path("/proc/mounts").read_text().splitlines())
        root = next((Path(mount) for _, mount, kind, *_ in mounts if kind == "cgroup2"), None)
        if root is None:
            raise CannotProvoke("there is no cgroup2 hierarchy here")
        self.parent = root / stage.invent("app")
        stage.will_undo("cgroup", directories=[str(self.parent)])
        self.parent.mkdir()
        arguments = (str(self.parent), first, more_per_s, str(stage.scratch))
        return stage.start(make_cgroups, *arguments, cpu=stage.other_cores)

    def start_walker(self, stage: Stage) -> Actor:
        return self.start_asker(stage, freeze_again, str(self.parent))
