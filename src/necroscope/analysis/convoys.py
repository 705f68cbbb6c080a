"""Who stood behind one lock, who had it, and what that one waited for in turn: as far as the
evidence goes.

A sleeping lock is given back by its holder, who thereby wakes the next: who ended a wait in this
way is who had the lock until then. Of locks of which every file has one, those who wait and those
who gave it to them are one convoy. How long a holder had it is known from its own wait for the same
lock, or from the first who came to stand behind it. Of a lock that is not given back the holder is
whom the recorder found while others waited (`held_by`), and where it was then. A holder that slept
for something else itself is followed there, and the report says where the evidence ends.

    waiter      ----------waits---------|
    holder   ---has the lock------------|   its own sleep meanwhile: the next link of the chain
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from necroscope.analysis.case import Case
from necroscope.analysis.convoy import MUCH, Convoy
from necroscope.analysis.episodes import touches
from necroscope.analysis.node import Node
from necroscope.analysis.task_waits import TaskWait, Waiter
from necroscope.analysis.wait_channels import MMAP_LOCK, MMAP_SECTIONS, STOPPED
from necroscope.analysis.waits import WAITS
from necroscope.model.span import Span

_MOST_LINKS: Final = 3
# Of what is sampled inside a section: fewer are chance, and a smaller part is one of many.
_LEAST_SAMPLES: Final = 5
_MOST_OF_IT: Final = 0.6


def convoys(case: Case, kind: str) -> list[Convoy]:
    """Of this kind of channel, those the incident is about, most waited for first."""
    found: dict[str, list[TaskWait]] = {}
    for wait in case.waits_for(kind):
        found.setdefault(wait.subject, []).append(wait)
    made = [
        _convoy(name, part, case.node)
        for name, waits in found.items()
        for part in ([waits] if waits[0].channel.is_one_lock else _group_by_holder(waits))
    ]
    return sorted((_with_holder_inside(case, one) for one in made), key=lambda one: -one.total_s)


def _with_holder_inside(case: Case, convoy: Convoy) -> Convoy:
    """mmap_lock is that of one process: if no task was seen to give it back, the thread that ran
    inside its section meanwhile had it.
    """
    longest = convoy.longest
    if convoy.holder is not None or longest.channel.name != MMAP_LOCK:
        return convoy
    inside = case.samples.machine.where(None, [longest.span], case.node.cores)
    inside = inside.of_processes([longest.task.pid]).of(MMAP_SECTIONS).without(WAITS)
    task = next(iter(inside.tasks()), None)
    waiters = {wait.task.tid for wait in convoy.waits}
    is_seen = task is not None and task.weight >= _LEAST_SAMPLES and task.share >= _MOST_OF_IT
    if task is None or task.tid is None or task.tid in waiters or not is_seen:
        return convoy
    holder = Waiter(task.comm, longest.task.pid, task.tid, task.cgroup, None)
    return replace(
        convoy,
        holder=holder,
        held=longest.span,
        found_in=inside.of_thread(task.tid).path()[::-1],
        holders=1,
        is_kept=True,
    )


def _group_by_holder(waits: Sequence[TaskWait]) -> list[list[TaskWait]]:
    """Those that one task gave the lock to, or took it from, directly or through others."""
    parts: list[tuple[set[int], list[TaskWait]]] = []
    for wait in waits:
        tids, own = {wait.task.tid}, [wait]
        # Any thread of a server may answer.
        tids |= {wait.given_by.tid, wait.given_by.pid} if wait.given_by else set()
        for part in [one for one in parts if one[0] & tids]:
            parts.remove(part)
            tids, own = tids | part[0], [*part[1], *own]
        parts.append((tids, own))
    return [own for _, own in parts]


def _convoy(name: str, waits: Sequence[TaskWait], node: Node) -> Convoy:
    holds: dict[int, tuple[Span, TaskWait]] = {}
    for wait in waits:
        if wait.given_by is None:
            continue
        span = Span(_since(wait.given_by.tid, wait, waits), wait.to_ns)
        known = holds.get(wait.given_by.tid)
        if known is None or span.length_ns > known[0].length_ns:
            holds[wait.given_by.tid] = span, wait
    if not holds:
        return Convoy(name, tuple(waits), None, None, (), ())
    held, last = max(holds.values(), key=lambda one: one[0].length_ns)
    holder = last.given_by
    assert holder is not None
    return Convoy(
        name,
        tuple(waits),
        holder,
        held,
        last.by_stack if last.is_given else (),
        chain_of(holder, held, node, name),
        len(holds),
        _last_held_stack(holder.tid, waits),
        not last.is_given,
    )


def _last_held_stack(holder: int, waits: Sequence[TaskWait]) -> tuple[str, ...]:
    """Where the holder was when it was last looked at."""
    own = [wait for wait in waits if wait.held_by is not None and wait.held_by.tid == holder]
    return max(own, key=lambda wait: wait.seconds).held_stack if own else ()


def _since(holder: int, wait: TaskWait, waits: Sequence[TaskWait]) -> int:
    """When the holder that ended this wait got the lock: as its own wait for it was over, else
    before anyone stood behind it.
    """
    own = [other.to_ns for other in waits if other.task.tid == holder and other.to_ns < wait.to_ns]
    behind = [other.from_ns for other in waits if touches(other.span, wait.span)]
    return max(own) if own and max(own) > min(behind) else min(behind)


def chain_of(holder: Waiter, held: Span, node: Node, name: str) -> tuple[TaskWait, ...]:
    """What the holder waited for longest while it had the lock, and who it was that it waited
    for. That a process was stopped holds up all its threads. What it did before or after does not
    count.
    """
    links: list[TaskWait] = []
    while len(links) < _MOST_LINKS:
        waits = [
            wait
            for wait in node.waits
            if (wait.task.tid == holder.tid or _stops(wait, holder))
            and touches(wait.span, held)
            and wait.subject != name
            and wait not in links
        ]
        longest = max(waits, key=lambda wait: wait.span.shared_ns(held), default=None)
        if longest is None or longest.span.shared_ns(held) < MUCH * held.length_ns:
            break
        links.append(longest)
        ahead = longest.given_by or longest.by
        if ahead is None:
            break
        holder, held = ahead, longest.span
    return tuple(links)


def _stops(wait: TaskWait, holder: Waiter) -> bool:
    return wait.task.pid == holder.pid and wait.channel.kind == STOPPED
