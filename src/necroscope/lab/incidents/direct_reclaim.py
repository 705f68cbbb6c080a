"""Tasks that have to find their own memory before they may go on.

What it does: on a node of some hundred containers workers walk through a mapped file of gigabytes,
so that they allocate page cache all the time. Then free memory is below the `min` watermark (which
is lifted up to it, so that no program's memory is used up): kswapd alone does not suffice any
more, and every allocation of every task first has to scan, unmap and free pages itself, in the
middle of its page fault or read.

Seen in the wild: corosync #520, where real-time threads stood in reclaim until the cluster called
the node dead; any node whose kubelet leaves no headroom between limits and memory.

What must be seen: a core in system mode in the workload's own tasks, in `try_to_free_pages` below
`__alloc_pages_slowpath`; `allocstall` and pages scanned directly rise. kswapd works too, on another
core: it is not the one who makes them wait.
"""

from typing import Any

from necroscope.lab import mapped_stream, watermarks
from necroscope.lab.measured import Measurements
from necroscope.lab.scenario import KnownCulprit, KnownOrigin, Scenario, Truth, reached
from necroscope.lab.settled_cgroups import settle_many
from necroscope.lab.stage import Stage

_FILE_BYTES = 3 << 30
_PAUSE_S = 0.006


class DirectReclaim(Scenario):
    name = "direct-reclaim"
    cause = "direct-reclaim"
    twin = "kswapd-reclaim"
    tolerates = ("kswapd-reclaim",)

    def prepare(self, stage: Stage) -> None:
        watermarks.prepare(stage)
        self.file = stage.scratch / f"{stage.invent('app')}.idx"
        mapped_stream.make_file(self.file, _FILE_BYTES)
        pods = stage.make_cgroup(f"{stage.invent('app')}-pods")
        self.settled = settle_many(stage, pods, stage.random.randrange(250, 400))
        stage.start(mapped_stream.read_once, str(self.file)).wait(60)

    def provoke(self, stage: Stage) -> None:
        place: dict[str, Any] = {
            "comm": stage.invent("app"),
            "cpu": stage.core,
            "cgroup": self.settled[0],
            "nice": -10,
            "memory_bytes": 6 << 30,
        }
        starts = [number * _FILE_BYTES // 4 for number in range(stage.random.randrange(3, 5))]
        with watermarks.pressed(stage, "direct") as presser:
            self.workers = [
                stage.start(mapped_stream.stream, str(self.file), at, _PAUSE_S, **place)
                for at in starts
            ]
            stage.hold(presser, *self.workers)

    def verify(self, stage: Stage, measured: Measurements) -> Truth:
        stalls = sum(
            measured.growth("/proc/vmstat", f"allocstall_{zone}")
            for zone in ("dma", "dma32", "normal", "movable")
        )
        impact = {
            "system_share": reached(
                "system share of the core", measured.shares(stage.core)["system"], at_least=0.5
            ),
            "stalls_per_s": reached(
                "allocations stalled per second", stalls / stage.seconds, at_least=50
            ),
            "scanned_by_tasks_per_s": reached(
                "pages scanned by tasks per second",
                measured.growth("/proc/vmstat", "pgscan_direct") / stage.seconds,
                at_least=10_000,
            ),
        }
        worker = self.workers[0]
        return Truth(
            impact,
            core=stage.core,
            mode="system",
            culprit=KnownCulprit(worker.comm, worker.pid, self.settled[0].path),
            origin=KnownOrigin("cgroup", self.settled[0].path, also=(worker.comm,)),
        )
