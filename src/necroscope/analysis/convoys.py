"""Who stood behind one lock, who had it, and what that one waited for in turn: as far as the
evidence goes.

A sleeping lock is given back by its holder, who thereby wakes the next: who ended a wait in this
way is who had the lock until then. Of locks of which every file has one, those who wait and those
who gave it to them are one convoy. How long a holder had it is known from its own wait for the same
lock, or from the first who came to stand behind it. A holder that slept for something else itself
is followed there.

    waiter      ----------waits---------|
    holder   ---has the lock------------|   its own sleep meanwhile: the next link of the chain
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from necroscope.analysis.attribution import container_of
from necroscope.analysis.case import Case
from necroscope.analysis.episodes import touches
from necroscope.analysis.node import Node
from necroscope.analysis.report import Culprit, Evidence
from necroscope.analysis.task_waits import TaskWait, Waiter
from necroscope.model.span import Span
from necroscope.model.units import NS_PER_S

_MOST_LINKS: Final = 3
# Of the time that the lock was held: less is not what it was held for.
_MUCH: Final = 0.3
_NAMED: Final = 3


@dataclass(frozen=True)
class Convoy:
    """`holder` is None while nobody gave the lock back. `chain` is what the holder waited for, and
    so on.
    """

    name: str
    waits: tuple[TaskWait, ...]
    holder: Waiter | None
    held: Span | None
    holder_stack: tuple[str, ...]
    chain: tuple[TaskWait, ...]
    holders: int = 0

    @property
    def tasks(self) -> int:
        return len({wait.task.tid for wait in self.waits})

    @property
    def longest(self) -> TaskWait:
        return max(self.waits, key=lambda wait: wait.seconds)

    @property
    def total_s(self) -> float:
        return sum(wait.seconds for wait in self.waits)

    @property
    def is_crowd(self) -> bool:
        """Nobody had it for long: many took it in turn."""
        return self.holders > 1 and self.held_s < _MUCH * self.longest.seconds

    @property
    def kept(self) -> str:
        return ", because it was not given back" if self.longest.is_open else ""

    @property
    def held_s(self) -> float:
        return (self.held[1] - self.held[0]) / NS_PER_S if self.held else 0.0

    def culprit(self, node: Node) -> Culprit | None:
        if self.holder is None:
            return None
        container = container_of(self.holder.cgroup, node)
        path = self.holder_stack[::-1]
        return Culprit(self.holder.comm, self.holder.pid, self.holder.cgroup, None, container, path)

    def evidence(self, case: Case) -> list[Evidence]:
        longest = {wait.task.tid: wait for wait in sorted(self.waits, key=lambda w: w.seconds)}
        worst = sorted(longest.values(), key=lambda wait: -wait.seconds)[:_NAMED]
        many = "a task" if self.tasks == 1 else f"{self.tasks} tasks"
        texts = [
            f"{many} waited {self.total_s:.1f} s in all: {', '.join(w.words() for w in worst)}"
        ]
        if self.is_crowd:
            texts.append(
                f"{self.holders} tasks took it in turn, none for longer than {self.held_s:.2f} s"
            )
        elif self.holder is None:
            texts.append(f"who had it was not seen{self.kept}")
        else:
            through = f", through {' < '.join(self.holder_stack[:4])}" if self.holder_stack else ""
            texts.append(
                f"{self.holder.comm}[{self.holder.tid}] had it for {self.held_s:.2f} s and gave"
                f" it back{through}"
            )
            texts += [f"meanwhile {wait.words()}" for wait in self.chain]
            if not self.chain:
                texts.append(
                    f"no wait of {self.holder.comm} itself is recorded meanwhile: it worked, or"
                    " slept for a timer, socket or pipe, which is not recorded"
                )
        return [case.evidence(text, "waits") for text in texts]


def convoys(case: Case, kind: str) -> list[Convoy]:
    """Of this kind of channel, those the incident is about, most waited for first."""
    found: dict[str, list[TaskWait]] = {}
    for wait in case.waits_for(kind):
        found.setdefault(wait.subject, []).append(wait)
    made = [
        _convoy(name, part, case.node)
        for name, waits in found.items()
        for part in ([waits] if waits[0].channel.is_one_lock else _linked(waits))
    ]
    return sorted(made, key=lambda one: -one.total_s)


def _linked(waits: Sequence[TaskWait]) -> list[list[TaskWait]]:
    """Those that one task gave the lock to, or took it from, directly or through others."""
    parts: list[tuple[set[int], list[TaskWait]]] = []
    for wait in waits:
        tids, own = {wait.task.tid}, [wait]
        tids |= {wait.given_by.tid} if wait.given_by else set()
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
    assert last.by is not None
    chain = _chain(last.by.tid, held, node, name)
    return Convoy(name, tuple(waits), last.by, held, last.by_stack, chain, len(holds))


def _since(holder: int, wait: TaskWait, waits: Sequence[TaskWait]) -> int:
    """When the holder that ended this wait got the lock: as its own wait for it was over, else
    before anyone stood behind it.
    """
    own = [other.to_ns for other in waits if other.task.tid == holder and other.to_ns < wait.to_ns]
    behind = [other.from_ns for other in waits if touches(other.span, wait.span)]
    return max(own) if own and max(own) > min(behind) else min(behind)


def _chain(tid: int, held: Span, node: Node, name: str) -> tuple[TaskWait, ...]:
    """What the holder waited for longest while it had the lock, and who it was that it waited
    for.
    """
    links: list[TaskWait] = []
    while len(links) < _MOST_LINKS:
        waits = [
            wait
            for wait in node.waits
            if wait.task.tid == tid
            and touches(wait.span, held)
            and wait.subject != name
            and wait not in links
        ]
        longest = max(waits, key=lambda wait: wait.seconds, default=None)
        if longest is None or longest.seconds < _MUCH * held.length_ns / NS_PER_S:
            break
        links.append(longest)
        if longest.by is None:
            break
        tid, held = longest.by.tid, longest.span
    return tuple(links)
