"""Who waits for an answer of a process that is found held up: stopped, blocked, or without a core.

A client that sleeps until its server answers looks like one that is idle, so it is asked for only
when a server's own wait is reported, and counts if what it sent lies unread in the server's socket.
Who stands in a write to a full TCP socket is found in the same way, whichever side listens.
"""

import platform
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from necroscope.model.units import NS_PER_S
from necroscope.sources.perf import system_calls
from necroscope.sources.perf.asleep_tasks import AsleepTask
from necroscope.sources.perf.unserved_clients import ClientConnection, UnservedClients
from necroscope.sources.perf.wait_chain import AsleepFinder, ChainLink
from necroscope.sources.perf.wait_records import WaitRecord
from necroscope.sources.procfs.blocked_tasks import CloseReader
from necroscope.sources.procfs.wait_holders import WaitHolders

_LEAST_NS: Final = NS_PER_S
_HELD_UP: Final = frozenset(("stopped", "blocked", "runnable", "futex", "file_lock", "unread"))
_MOST: Final = 16
# Times what a walk over all files takes: from one to the next, so that they take 1 % of a core.
_WALKS_APART: Final = 100
_QUARTER: Final = 4


class WaitClients:
    """`read_closely` reads what takes CAP_SYS_PTRACE; `spent_ns` is this thread's time on a
    core.
    """

    def __init__(
        self,
        proc: Path,
        read_closely: CloseReader | None = None,
        spent_ns: Callable[[], int] = time.thread_time_ns,
    ) -> None:
        self._holders = WaitHolders(proc, read_closely)
        self._unserved = UnservedClients(proc.parent)
        self._spent_ns = spent_ns
        self._not_before_ns = 0
        # Servers for which clients slept at the last walk, and when they are asked for again.
        self._watched: dict[int, int] = {}
        self._again_ns = 0

    def close(self) -> None:
        self._unserved.close()

    def find(
        self, waits: Sequence[WaitRecord], find_asleep: AsleepFinder, now_ns: int
    ) -> list[ChainLink]:
        """Clients of those who wait, that sleep for it themselves: when first seen, and again when
        they have slept a quarter longer, as long as what they sent lies unread.
        """
        held_up = sorted(filter(_is_held_up, waits), key=lambda wait: wait.waited_ns)
        servers = self._watched | {wait.task.pid: wait.task.tid for wait in held_up}
        is_due = bool(held_up) or now_ns >= self._again_ns
        if not servers or not is_due or now_ns < self._not_before_ns:
            return []
        started_ns = self._spent_ns()
        connections = self._unserved.find(servers)
        self._not_before_ns = now_ns + _WALKS_APART * (self._spent_ns() - started_ns)
        self._watched = {}
        if not connections:
            return []
        asleep = find_asleep({connection.client for connection in connections})
        found: dict[int, ChainLink] = {}
        for connection in connections:
            task = longest_asleep(connection, asleep)
            if task is None or connection.client in found or len(found) >= _MOST:
                continue
            client = self._holders.describe(task.task.tid)
            if client is not None:
                server = self._holders.describe(servers[connection.server])
                since_ns = now_ns - task.asleep_ns
                kind = "unread" if _is_write(task) else "unserved"
                found[connection.client] = ChainLink(kind, client, since_ns, server)
                self._watched[connection.server] = servers[connection.server]
        shortest_ns = min((now_ns - link.since_ns for link in found.values()), default=0)
        self._again_ns = now_ns + shortest_ns // _QUARTER
        return list(found.values())


def _is_held_up(wait: WaitRecord) -> bool:
    is_long = wait.waited_ns >= _LEAST_NS
    return is_long and wait.kind in _HELD_UP and wait.task.policy != "kernel"


def _is_write(task: AsleepTask) -> bool:
    return task.call in system_calls.WRITES.get(platform.machine(), ())


def longest_asleep(connection: ClientConnection, asleep: Sequence[AsleepTask]) -> AsleepTask | None:
    """The thread of a client that sleeps to read this connection or to write to it, or polls, for
    long. Who waits for all that it has open may have sent a datagram that has no answer, such as
    a metric.
    """
    machine = platform.machine()
    polls, uses = (
        set(system_calls.POLLS.get(machine, ())),
        set(system_calls.WRITES.get(machine, ())),
    )
    if connection.is_datagram:
        polls -= set(system_calls.EPOLLS.get(machine, ()))
    if connection.is_served:
        uses |= set(system_calls.READS.get(machine, ()))
    else:
        polls.clear()
    own = [
        one
        for one in asleep
        if one.task.pid == connection.client
        and one.asleep_ns >= _LEAST_NS
        and (one.call in polls or (one.call in uses and one.first == connection.descriptor))
    ]
    return max(own, key=lambda one: one.asleep_ns, default=None)
