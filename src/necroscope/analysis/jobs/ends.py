"""Why a member ended, by itself: the kernel's word first, then how it ended, then its own words.

Its words are the program's claim. They say what the program did, and whom it missed; they never say
that a machine is to blame.
"""

import re
import signal
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from necroscope.analysis.jobs.member import Member, NodeEvent
from necroscope.model.units import NS_PER_S

# In the order in which they explain: an end that follows from another comes last.
MEMORY_LIMIT, PROGRAM, KILLED = "memory_limit", "program", "killed"
PREEMPTED, STOPPED, PEER, NO_WORDS = "preempted", "stopped", "peer", "no_words"
OWN_ENDS: Final = (MEMORY_LIMIT, PROGRAM, PREEMPTED, KILLED, STOPPED)
_OOM_KINDS: Final = frozenset({"oom_kill", "container_oom"})
_OOM_NS: Final = 10 * NS_PER_S
_STOPPING: Final = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
# A member that lost another: gloo (transport/tcp/pair.cc, unbound_buffer.cc), NCCL's watchdog
# (ProcessGroupNCCL.cpp), c10d's store (TCPStore.cpp), torchrun, Ray (python/ray/exceptions.py).
_OF_PEER: Final = re.compile(
    r"(Connection|Socket) (closed|reset|was likely closed)|Timed out waiting \d+ ?ms"
    r"|Timed out after \d+ seconds waiting|Watchdog caught collective|collective operation timeout"
    r"|Dist(Backend|Network|Store)Error|recvValue failed|failed to recv, got|Broken pipe"
    r"|Connection ?Re(set|fused)|NCCL error|monitoredBarrier|ChildFailedError|SignalException"
    r"|RendezvousTimeout|ray\.exceptions\.\w*(Actor|Node|Worker|Object|Owner|GetTimeout|System)\w*"
    r"|(Actor(Died|Unavailable)|RayActor|NodeDied|WorkerCrashed|ObjectLost|OwnerDied)Error"
)
_PREEMPTED: Final = re.compile(r"DUE TO (PREEMPTION|NODE FAIL|TIME LIMIT|REQUEUE)")


@dataclass(frozen=True, slots=True)
class End:
    """`kind` is one of the words above; `text` says it."""

    kind: str
    text: str


def end_of(member: Member, events: Iterable[NodeEvent]) -> End | None:
    """None while it runs, and if it ended well or nothing is known of how it ended."""
    if member.ended_ns is None:
        return None
    # The kernel's word is enough: how a process ended is not known until its parent has asked.
    oom = _oom(member, events)
    if oom is not None:
        return End(MEMORY_LIMIT, f"the kernel killed it for memory: {oom.message}")
    words = member.words or ""
    if found := _PREEMPTED.search(words):
        return End(PREEMPTED, f"the scheduler ended it {found[0].lower()}: {words}")
    if not member.has_failed:
        return None
    if words and _OF_PEER.search(words):
        return End(PEER, words)
    return _by_status(member.signal, (member.status or 0) >> 8, words)


def _by_status(number: int, code: int, words: str) -> End:
    if number == signal.SIGKILL:
        return End(KILLED, "it was killed by SIGKILL, and not by the kernel for memory")
    if number in _STOPPING:
        return End(STOPPED, f"it was asked to end by {signal.Signals(number).name}")
    if words:
        return End(PROGRAM, words)
    if number:
        return End(PROGRAM, f"it ended by {_signal_name(number)}")
    return End(NO_WORDS, f"it ended with exit code {code}")


def _oom(member: Member, events: Iterable[NodeEvent]) -> NodeEvent | None:
    ended_ns = member.ended_ns or 0
    for event in events:
        is_near = abs(event.time_ns - ended_ns) <= _OOM_NS
        if event.kind in _OOM_KINDS and event.by_kernel and is_near and event.pid == member.pid:
            return event
    return None


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
