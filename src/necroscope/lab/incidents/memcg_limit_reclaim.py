"""A pod at its memory limit reclaims its own pages in a loop, while the machine has memory to
spare.

What it does: a pod of many containers, each its own memory cgroup with a few files and directory
entries to its name, has one limit for all. One of its containers keeps most of the limit as private
memory, which cannot be given back without swap, and streams through a file larger than what is
left. Every page it reads must be charged, every charge is over the limit, so every few pages its
own read call goes to reclaim: through all cgroups of the pod and through the shrinker of each of
their file systems, for a handful of pages.

Seen in the wild: concourse/hush-house #22, where workers were 90 % in the kernel in `try_charge`,
`try_to_free_mem_cgroup_pages`, `shrink_slab`, `super_cache_count` and `list_lru_count_one`: the
product of memory cgroups and mounts, and a limit that was too small.

What must be seen: one core in system mode in the container's own task, below `try_charge`; the
pod's limit hit thousands of times per second; free memory on the machine all the time, so that more
memory in the node changes nothing. It walks cgroups as zombies do (`mem_cgroup_iter`), but for its
own limit.
"""

import mmap

from necroscope.lab.measured import Measurements
from necroscope.lab.scenario import KnownCulprit, KnownOrigin, Scenario, Truth, reached
from necroscope.lab.settled_cgroups import settle_many
from necroscope.lab.stage import Stage

_MIB = 1 << 20
_FILE_BYTES = 4 << 30


def stream(path: str, private_bytes: int) -> None:
    """Hold private memory, and read the file round and round."""
    private = mmap.mmap(-1, private_bytes)
    for offset in range(0, private_bytes, mmap.PAGESIZE):
        private[offset] = 1
    buffer = bytearray(_MIB)
    with open(path, "rb", buffering=0) as file:
        while True:
            if not file.readinto(buffer):
                file.seek(0)


class MemcgLimitReclaim(Scenario):
    name = "memcg-limit-reclaim"
    cause = "memcg-limit-reclaim"
    twin = "zombie-memcg-walk"

    def prepare(self, stage: Stage) -> None:
        self.pod = stage.make_cgroup(f"{stage.invent('app')}-pod")
        self.containers = settle_many(stage, self.pod, stage.random.randrange(150, 220))

    def provoke(self, stage: Stage) -> None:
        limit_bytes = stage.random.randrange(64, 128) * _MIB
        limit_file, self.counter = (
            ("memory.max", "memory.events")
            if self.pod.is_v2
            else ("memory.limit_in_bytes", "memory.failcnt")
        )
        self.pod.write(limit_file, limit_bytes)
        stage.watch(self.pod.file(self.counter))
        path = stage.scratch / f"{stage.invent('app')}.dat"
        with path.open("wb") as file:
            file.truncate(_FILE_BYTES)
        self.container = stage.random.choice(self.containers)
        self.reader = stage.start(
            stream, str(path), limit_bytes * 3 // 4, cpu=stage.core, nice=-10, cgroup=self.container
        )
        stage.hold(self.reader)

    def verify(self, stage: Stage, measured: Measurements) -> Truth:
        hits = self._limit_hits(measured) / stage.seconds
        impact = {
            "system_share": reached(
                "system share of the core", measured.shares(stage.core)["system"], at_least=0.6
            ),
            "limit_hits_per_s": reached("hits of the limit per second", hits, at_least=500),
            "free_bytes": reached(
                "free bytes of the machine",
                measured.highest("/proc/meminfo", "MemFree") * 1024,
                at_least=1 << 30,
            ),
        }
        return Truth(
            impact,
            core=stage.core,
            mode="system",
            culprit=KnownCulprit(self.reader.comm, self.reader.pid, self.container.path),
            origin=KnownOrigin(
                "cgroup", self.pod.path, also=(self.container.path, self.reader.comm)
            ),
        )

    def _limit_hits(self, measured: Measurements) -> int:
        path = self.pod.file(self.counter)
        if self.pod.is_v2:
            return measured.growth(path, "max")
        counts = [int(text) for _, text in measured.texts(path)]
        return counts[-1] - counts[0] if counts else 0
