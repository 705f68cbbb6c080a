"""Populations that can only be counted by walking them: mounts, network devices, BPF maps, IPVS
services, System V objects. Each is counted as seldom as its length demands.
"""

import os
import select
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from necroscope.errors import NecroscopeError
from necroscope.sources.perf.bpf import count_maps

# Of a core, for each list: one that takes 20 ms to count is counted every 200 s.
_SHARE_OF_CORE: Final = 0.0001
_PIECE_BYTES: Final = 1 << 16
_POLLED: Final = select.POLLPRI | select.POLLERR


@dataclass(slots=True)
class CountedList:
    """`count` walks it and gives None where the kernel has no such list; `is_changed` says without
    a walk whether it may have another length than before. `refusal` is why it could not be read.
    """

    kind: str
    count: Callable[[], int | None]
    is_changed: Callable[[], bool] = lambda: True
    last: int | None = None
    due_s: float = 0.0
    refusal: str | None = None

    def read(self, clock: Callable[[], float] = time.monotonic) -> int | None:
        """The number last counted, counted again where that is due."""
        started_s = clock()
        if started_s < self.due_s or (self.last is not None and not self.is_changed()):
            return self.last
        try:
            self.last, self.refusal = self.count(), None
        except (NecroscopeError, OSError) as error:
            self.last, self.refusal = None, getattr(error, "strerror", None) or str(error)
        ended_s = clock()
        self.due_s = ended_s + (ended_s - started_s) / _SHARE_OF_CORE
        return self.last


class MountList:
    """The mounts of the node's first process. poll(2) tells that they have changed
    (fs/namespace.c): an unchanged table is never read.
    """

    def __init__(self, root: Path) -> None:
        self._path = root / "proc/1/mountinfo"
        self._descriptor = -1
        self._poll = select.poll()

    def is_changed(self) -> bool:
        return self._descriptor < 0 or bool(self._poll.poll(0))

    def count(self) -> int | None:
        if self._descriptor < 0:
            self._descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
            self._poll.register(self._descriptor, _POLLED)
        # The next poll reports what changes while it is counted.
        self._poll.poll(0)
        return count_lines(self._path)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def counted_lists(root: Path, mounts: MountList) -> list[CountedList]:
    """All that a kernel may have."""
    sysv = root / "proc/sysvipc"
    return [
        CountedList("mounts", mounts.count, mounts.is_changed),
        CountedList("network-devices", lambda: _entries(root / "sys/class/net")),
        CountedList("bpf-maps", count_maps),
        CountedList("ipvs-services", lambda: count_lines(root / "proc/1/net/ip_vs", head=3)),
        CountedList("shared-memory-segments", lambda: count_lines(sysv / "shm", head=1)),
        CountedList("semaphore-sets", lambda: count_lines(sysv / "sem", head=1)),
        CountedList("message-queues", lambda: count_lines(sysv / "msg", head=1)),
    ]


def count_lines(path: Path, head: int = 0) -> int | None:
    """Of a table of text below its head, in pieces; None where there is none."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        count = 0
        while piece := os.read(descriptor, _PIECE_BYTES):
            count += piece.count(b"\n")
        return max(0, count - head)
    finally:
        os.close(descriptor)


def _entries(directory: Path) -> int | None:
    try:
        return len(os.listdir(directory))
    except FileNotFoundError:
        return None
