"""Who has what a task still waits for, where that one is, and if it waits to read a pipe or socket
itself, who has the other end, or if it waits for its child, that one, as flock(1) does; of a
semaphore, which knows no owner, who of the family sleeps.
"""

import platform
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, NamedTuple

from necroscope.model.units import NS_PER_S
from necroscope.sources.perf import system_calls
from necroscope.sources.perf.asleep_tasks import AsleepTask
from necroscope.sources.perf.pipe_ends import READER, WRITER, PipeEnds
from necroscope.sources.perf.wait_records import WaitRecord
from necroscope.sources.procfs.blocked_tasks import CloseReader
from necroscope.sources.procfs.wait_holders import WaitHolder, WaitHolders

_LEAST_NS: Final = NS_PER_S // 2
_MOST_LINKS: Final = 2
_MOST_KNOWN: Final = 512
# fs/pipe.c, net/unix/af_unix.c, net/core/datagram.c: where one sleeps until there is something to
# read.
_READS: Final = frozenset(
    (
        *("pipe_read", "anon_pipe_read", "fifo_pipe_read", "unix_stream_read_generic"),
        *("unix_stream_recvmsg", "unix_dgram_recvmsg", "__skb_wait_for_more_packets"),
    )
)
# kernel/exit.c
_CHILD_WAITS: Final = frozenset(("do_wait", "kernel_wait4", "kernel_waitid"))


# Of some processes the threads that sleep now.
AsleepFinder = Callable[[Iterable[int]], list[AsleepTask]]


class ChainLink(NamedTuple):
    """A task that is part of a wait of others: the kind of its own sleep, since when it was seen to
    sleep, and who should end it.
    """

    kind: str
    task: WaitHolder
    since_ns: int
    peer: WaitHolder | None


class WaitChain:
    """`read_closely` reads what takes CAP_SYS_PTRACE."""

    def __init__(self, proc: Path, read_closely: CloseReader | None = None) -> None:
        self._holders = WaitHolders(proc, read_closely)
        self._looked_at: tuple[int, int] | None = None
        self._ends = PipeEnds(proc.parent)
        self._asleep: dict[int, tuple[tuple[str, ...], int]] = {}

    def close(self) -> None:
        self._ends.close()

    def holder(self, wait: WaitRecord) -> WaitHolder | None:
        """Of what a wait that goes on is for; None where that cannot be found."""
        if wait.kind == "unread":
            is_long = wait.waited_ns >= _LEAST_NS
            return self._peer(wait.task.pid, wait.address, READER) if is_long else None
        tid = wait.other.tid if wait.other is not None else None
        return self._holders.find(wait.kind, wait.task.pid, tid, wait.waited_ns)

    def links(self, holder: WaitHolder, waited_ns: int, now_ns: int) -> list[ChainLink]:
        """From who has it on, as far as each sleeps for the next one's answer."""
        found: list[ChainLink] = []
        while len(found) < _MOST_LINKS and waited_ns >= _LEAST_NS:
            is_asleep, peer = self._awaited(holder)
            if not is_asleep:
                break
            found.append(ChainLink("unanswered", holder, self._since_ns(holder, now_ns), peer))
            if peer is None:
                break
            holder = peer
        return found

    def _awaited(self, holder: WaitHolder) -> tuple[bool, WaitHolder | None]:
        """Whether it sleeps until another process ends or writes, and which, if that is known."""
        if _CHILD_WAITS.intersection(holder.functions):
            child = self._holders.only_child(holder.tid)
            return child is not None, child
        if not _READS.intersection(holder.functions):
            return False, None
        descriptor = self._holders.descriptor(holder.tid)
        if descriptor is None:
            return False, None
        return True, self._peer(holder.pid, descriptor, WRITER)

    def naps(self, wait: WaitRecord, find_asleep: AsleepFinder, now_ns: int) -> list[ChainLink]:
        """Relatives of who waits for a semaphore that sleep until a timer ends: one may have it.
        Once per tick for all that wait of a family.
        """
        if wait.kind != "semaphore" or wait.waited_ns < _LEAST_NS:
            return []
        parent, family = self._holders.family(wait.task.pid)
        if self._looked_at == (parent, now_ns):
            return []
        self._looked_at = parent, now_ns
        naps = system_calls.NAPS.get(platform.machine(), ())
        asleep = [one for one in find_asleep(family) if one.call in naps]
        found = [(self._holders.describe(one.task.tid), one.asleep_ns) for one in asleep]
        return [
            ChainLink("asleep", task, now_ns - asleep_ns, None)
            for task, asleep_ns in found
            if task is not None
        ]

    def _peer(self, pid: int, descriptor: int, mode: int) -> WaitHolder | None:
        """Of several that have it open the one that is not itself waiting for it, if there is."""
        ends = [self._holders.describe(end.pid) for end in self._ends.find(pid, descriptor, mode)]
        known = [end for end in ends if end is not None]
        busy = [end for end in known if not _READS.intersection(end.functions)]
        return next(iter([*busy, *known]), None)

    def _since_ns(self, holder: WaitHolder, now_ns: int) -> int:
        """When it was first found in this sleep, as far as its functions tell."""
        if len(self._asleep) > _MOST_KNOWN:
            self._asleep.clear()
        functions, since_ns = self._asleep.get(holder.tid, ((), now_ns))
        if functions != holder.functions:
            since_ns = now_ns
        self._asleep[holder.tid] = holder.functions, since_ns
        return since_ns
