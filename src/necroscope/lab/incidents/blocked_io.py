"""The file server behind a mount stops answering, and every task that reads from it hangs while the
cores are idle.

What it does: data loaders read their shards from a network file system whose client is a user-space
daemon (FUSE). The daemon stops answering reads: it has lost its server, or waits for itself. Each
loader is in an uninterruptible read for a page that does not come. The load average rises by one
for each of them, and no core does anything.

Seen in the wild: Netflix "FUSE deadlock" (2023: a pod that could not die, its threads in D),
kubernetes #101622 and #122491 (kubelet stuck in stat of a hung mount), longhorn #12478.

What must be seen: idle cores with high load, tasks in state D in `folio_wait_bit` below a read of
that mount, I/O pressure near 100 % of the time. The origin is the server behind the mount; more
cores, a kill of the readers and a restart of the node agent change nothing.
"""

import os
import signal
import time

from necroscope.lab import fuse_server
from necroscope.lab.measured import Measurements
from necroscope.lab.scenario import (
    CannotProvoke,
    KnownCulprit,
    KnownOrigin,
    Scenario,
    Truth,
    reached,
)
from necroscope.lab.stage import Stage

_BLOCK_BYTES = 64 << 10


def load(path: str, start_bytes: int, pause_s: float) -> None:
    """A block at a time, each from a place that is not cached."""
    descriptor = os.open(path, os.O_RDONLY)
    offset = start_bytes
    while True:
        os.pread(descriptor, _BLOCK_BYTES, offset)
        offset += 1 << 20
        time.sleep(pause_s)


class BlockedIo(Scenario):
    name = "blocked-io"
    cause = "blocked-io"
    twin = "idle"
    needs = ("/dev/fuse",)

    def prepare(self, stage: Stage) -> None:
        mount = stage.scratch / stage.invent("app")
        mount.mkdir()
        self.source = f"{stage.invent('app')}:/data"
        stage.will_undo("mount", path=str(mount))
        self.server = stage.start(
            fuse_server.serve, self.source, str(mount), comm=stage.invent("agent")
        )
        deadline = time.monotonic() + 10
        while not os.path.ismount(mount):
            if self.server.exit_code is not None or time.monotonic() > deadline:
                raise CannotProvoke(f"cannot mount: {stage.output()}", "the kernel needs FUSE")
            time.sleep(0.05)
        self.mount = str(mount)
        path, name = f"{mount}/{stage.invent('app')}.tar", stage.invent("app")
        starts = [number << 34 for number in range(stage.random.randrange(6, 14))]
        self.readers = [
            stage.start(load, path, at, stage.random.uniform(0.2, 0.4), comm=name) for at in starts
        ]
        for reader in self.readers:
            stage.watch(f"/proc/{reader.pid}/stat")
        stage.watch("/proc/pressure/io")

    def provoke(self, stage: Stage) -> None:
        self.server.signal(signal.SIGUSR1)
        stage.hold(self.server, *self.readers)
        self.server.signal(signal.SIGUSR2)

    def verify(self, stage: Stage, measured: Measurements) -> Truth:
        blocked = [self._share_blocked(measured, reader.pid) for reader in self.readers]
        impact = {
            "readers": len(blocked),
            "blocked_task_s": round(sum(blocked) * stage.seconds, 1),
            "share_blocked": reached(
                "share of time that a reader is in D", min(blocked), at_least=0.7
            ),
            "share_blocked_before": max(
                self._share_blocked(measured, reader.pid, before=True) for reader in self.readers
            ),
        }
        return Truth(
            impact,
            culprit=KnownCulprit(
                self.readers[0].comm, self.readers[0].pid, also=(self.server.comm,)
            ),
            origin=KnownOrigin("process", self.server.comm, also=(self.source, self.mount)),
        )

    def _share_blocked(self, measured: Measurements, pid: int, *, before: bool = False) -> float:
        texts = measured.texts(f"/proc/{pid}/stat", measured.baseline if before else None)
        states = [text.rsplit(")", 1)[1].split()[0] for _, text in texts]
        return round(states.count("D") / max(1, len(states)), 3)
