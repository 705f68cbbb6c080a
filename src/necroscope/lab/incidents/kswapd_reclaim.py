"""kswapd works without end, since what it frees is taken again at once.

What it does: a node has more than a thousand containers, each a memory cgroup with a few files and
directory entries to its name. One of them walks through a mapped file of gigabytes, so that page
cache is allocated all the time. Then memory becomes scarce: free memory is below the `low`
watermark (which is lifted up to it, so that no program's memory is used up). kswapd wakes and
goes through all cgroups and the shrinkers of each; before it has reached the `high` watermark the
reader has taken again what it has freed.

Seen in the wild: coreos/bugs #1424 and #1450, okd #1846: `kswapd0` at 100 % for hours on nodes
without swap, while the workload refaults what it has just lost; MCO PR #506 reserves memory against
it.

What must be seen: bursts of `kswapd0` on one core in system mode in `shrink_node`, `shrink_lruvec`
and `shrink_slab`; pages scanned by kswapd, not by the tasks themselves. No process of the workload
is to be seen on that core: the origin is the process that fills the cache.
"""

import contextlib
from pathlib import Path
from typing import Any

from necroscope.lab import mapped_stream, watermarks
from necroscope.lab.measured import Measurements
from necroscope.lab.scenario import (
    CannotProvoke,
    KnownCulprit,
    KnownOrigin,
    Scenario,
    Truth,
    reached,
)
from necroscope.lab.settled_cgroups import settle_many
from necroscope.lab.stage import Stage

_FILE_BYTES = 3 << 30
_PAUSE_S = 0.004
_KSWAPD = "kswapd0"


class KswapdReclaim(Scenario):
    name = "kswapd-reclaim"
    cause = "kswapd-reclaim"
    twin = "direct-reclaim"
    tolerates = ("direct-reclaim",)

    def prepare(self, stage: Stage) -> None:
        self.kswapd = _pid_of(_KSWAPD)
        watermarks.prepare(stage)
        self.file = stage.scratch / f"{stage.invent('app')}.idx"
        mapped_stream.make_file(self.file, _FILE_BYTES)
        pods = stage.make_cgroup(f"{stage.invent('app')}-pods")
        self.settled = settle_many(stage, pods, stage.random.randrange(1000, 1400))
        stage.start(mapped_stream.read_once, str(self.file)).wait(60)
        stage.watch_task(self.kswapd)
        # So that it is not lost among what else a busy machine does.
        stage.move_task(self.kswapd, cpu=stage.core, nice=-10)

    def provoke(self, stage: Stage) -> None:
        # On the other cores, so that kswapd is the only one to be seen on the chosen one.
        place: dict[str, Any] = {
            "comm": stage.invent("app"),
            "cpu": stage.other_cores,
            "cgroup": self.settled[0],
            "nice": 5,
            "memory_bytes": 6 << 30,
        }
        starts = (0, _FILE_BYTES // 2)
        with watermarks.pressed(stage, "kswapd") as presser:
            self.readers = [
                stage.start(mapped_stream.stream, str(self.file), at, _PAUSE_S, **place)
                for at in starts
            ]
            stage.hold(presser, *self.readers)

    def verify(self, stage: Stage, measured: Measurements) -> Truth:
        by_kswapd, by_tasks = (
            measured.growth("/proc/vmstat", f"pgscan_{who}") for who in ("kswapd", "direct")
        )
        ran_s, _ = measured.schedstat(self.kswapd)
        impact = {
            "kswapd_share": reached(
                "share of time that kswapd ran", ran_s / stage.seconds, at_least=0.25
            ),
            "system_share_peak_1s": reached(
                "highest system share over a second",
                measured.peak_share(stage.core, ("system",), 1.0),
                at_least=0.6,
            ),
            "scanned_by_kswapd_per_s": reached(
                "pages scanned by kswapd per second", by_kswapd / stage.seconds, at_least=20_000
            ),
            "scanned_by_tasks": reached(
                "pages scanned by tasks", by_tasks, at_most=0.5 * by_kswapd
            ),
        }
        return Truth(
            impact,
            core=stage.core,
            mode="system",
            culprit=KnownCulprit(_KSWAPD, self.kswapd),
            origin=KnownOrigin(
                "cgroup", self.settled[0].path, also=(self.readers[0].comm, _KSWAPD)
            ),
        )


def _pid_of(comm: str) -> int:
    for file in Path("/proc").glob("[0-9]*/comm"):
        with contextlib.suppress(OSError):
            if file.read_text().strip() == comm:
                return int(file.parent.name)
    raise CannotProvoke(f"there is no {comm} here", "the lab must see the kernel's threads")
