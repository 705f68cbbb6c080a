"""Episodes that begin with a victim: tasks that wanted a core and had none, or slept for something
that was held, whether or not any core was busy.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np

from necroscope.analysis.columns import ColumnArrays, Floats
from necroscope.analysis.episodes import Episode, EpisodeKind, was_throttled
from necroscope.analysis.late_beats import LateBeat
from necroscope.analysis.machine_episodes import throttled_episodes
from necroscope.analysis.node import Node
from necroscope.analysis.task_waits import RUNNABLE, TaskWait, whole_waits
from necroscope.analysis.wait_channels import (
    ANSWER,
    CHILD,
    DEVICE,
    FILE_LOCK,
    FUTEX,
    LOCK,
    MEMORY_LIMIT,
    OTHER,
    SEMAPHORE,
    UNREAD,
    UNSERVED,
    WRITEBACK,
)
from necroscope.model.definitions import ORDINARY, OVER_NS, REAL_TIME
from necroscope.model.span import Span, merge
from necroscope.model.units import NS_PER_S

# For a core: a fair scheduler's queue of some ten tasks takes less.
_DELAYED_S: Final = 0.2
# Starved: whatever the reason, a task that should have its turn got none.
_STARVED_S: Final = 3.0
# Behind real-time tasks, in all: what they leave to others is a twentieth of each second.
_OUTRANKED_S: Final = 2.0
# Of each second, added up over tasks: a core's queue that is never empty.
_CROWDED: Final = 0.5
_CROWDED_S: Final = 3.0
# For something that was held: what is worth a look, and from when on it is an incident by itself.
_BLOCKED_S: Final = {
    LOCK: 0.2,
    FUTEX: 0.2,
    WRITEBACK: 0.5,
    DEVICE: 1.0,
    OTHER: 1.0,
    FILE_LOCK: 1.0,
    ANSWER: 1.0,
    # posix_spawn(3) starts a program in milliseconds.
    CHILD: 1.0,
    UNREAD: 1.0,
    SEMAPHORE: 1.0,
    UNSERVED: 1.0,
    MEMORY_LIMIT: 1.0,
}
# Of a thread with a rhythm: so late, and this many beats, that tasks that wait for it may notice.
_LATE_S: Final = 0.5
_MISSED: Final = 2.0
# For what has no name an incident by itself: one wait; of what a disk may need, which is slow by
# trade, and of several waits together more.
_HUNG_S: Final = 5.0
_HUNG_DISK_S: Final = 10.0
_AGAIN_S: Final = 1.0
_NEVER_S: Final = float("inf")
_WAITED_FOR_CORE: Final = "ordinary tasks waited up to {wait_ms:,.0f} ms for core {cpu}, {times}"


def wait_episodes(node: Node) -> Iterator[Episode]:
    waits = node.waits
    yield from _delay_episodes([wait for wait in waits if wait.is_for_a_core and wait.is_ordinary])
    yield from _crowd_episodes(node)
    yield from _sleep_episodes([wait for wait in waits if not wait.is_for_a_core])
    yield from _late(node.late_beats)


def _delay_episodes(waits: Iterable[TaskWait]) -> Iterator[Episode]:
    """Those behind real-time tasks apart: on a machine where everyone waits they are not lost."""
    long = [wait for wait in waits if wait.seconds >= _DELAYED_S]
    for own in _together(((wait.cpu, _is_outranked(wait)), wait) for wait in long):
        longest = max(own, key=lambda wait: wait.seconds)
        total_s = sum(wait.seconds for wait in own)
        is_starved = longest.seconds >= _STARVED_S
        yield Episode(
            EpisodeKind.TASK_DELAYED,
            longest.cpu,
            None,
            *_span(own),
            longest.seconds,
            _WAITED_FOR_CORE,
            "waits",
            is_starved or (_is_outranked(longest) and total_s >= _OUTRANKED_S),
            amount=len(own),
        )


def _is_outranked(wait: TaskWait) -> bool:
    return wait.by is not None and wait.by.policy in REAL_TIME


def _crowd_episodes(node: Node) -> Iterator[Episode]:
    """Many waits that are short each: by core and second how much was waited in all, but for
    cgroups without quota left, which wait for that.
    """
    rows = node.columns("waits")
    if not len(rows):
        return
    is_ordinary = np.array([policy in ORDINARY for policy in rows["policy"]], dtype=bool)
    rows = rows.at((rows["kind"] == RUNNABLE) & is_ordinary & (rows["priority"] <= 0))
    rows = _with_quota(whole_waits(rows), node)
    for cpu in np.unique(rows["cpu"]):
        own = rows.of_core(int(cpu))
        seconds, waited_ns = _by_second(own)
        full = seconds[waited_ns >= _CROWDED * NS_PER_S]
        for from_s, to_s in merge([Span(int(s), int(s) + 1) for s in full], 1):
            if to_s - from_s >= _CROWDED_S:
                span = Span(from_s * NS_PER_S, to_s * NS_PER_S)
                inside = own.within([span])
                yield Episode(
                    EpisodeKind.TASK_DELAYED,
                    int(cpu),
                    None,
                    *span,
                    float(np.max(inside["waited_ns"], initial=0)) / NS_PER_S,
                    _WAITED_FOR_CORE,
                    "waits",
                    is_strong=False,
                    amount=len(inside),
                )


def _by_second(rows: ColumnArrays) -> tuple[Floats, Floats]:
    """Seconds, and how much of these waits lies in each."""
    began_ns = rows["time"] - rows["waited_ns"]
    first = began_ns // NS_PER_S
    parts = (rows["time"] // NS_PER_S - first + 1).astype(np.int64)
    place = np.repeat(np.arange(len(rows)), parts)
    second = first[place] + np.arange(len(place)) - np.repeat(np.cumsum(parts) - parts, parts)
    until_ns = np.minimum(rows["time"][place], (second + 1) * NS_PER_S)
    seconds, at = np.unique(second, return_inverse=True)
    inside_ns = until_ns - np.maximum(began_ns[place], second * NS_PER_S)
    return seconds, np.bincount(at, inside_ns, len(seconds)).astype(np.float64)


def _with_quota(rows: ColumnArrays, node: Node) -> ColumnArrays:
    throttled = list(throttled_episodes(node.columns("cgroups")))
    if not throttled:
        return rows
    times = zip(rows["cgroup"], rows["time"], rows["waited_ns"], strict=True)
    kept = [
        not was_throttled(throttled, cgroup, Span(int(time_ns - waited_ns), int(time_ns)))
        for cgroup, time_ns, waited_ns in times
    ]
    return rows.at(np.array(kept, dtype=bool))


def _sleep_episodes(waits: Iterable[TaskWait]) -> Iterator[Episode]:
    """One for each thing that was waited for; sleeps that are ordinary are none."""
    counted = (
        (wait.subject, wait)
        for wait in waits
        if wait.seconds >= _BLOCKED_S.get(wait.channel.kind, _NEVER_S)
    )
    for own in _together(counted):
        longest = max(own, key=lambda wait: wait.seconds)
        yield Episode(
            EpisodeKind.TASK_BLOCKED,
            None,
            None,
            *_span(own),
            longest.seconds,
            "tasks waited up to {wait_ms:,.0f} ms for {subject}, {times}",
            "waits",
            _is_hung(own),
            subject=longest.subject,
            amount=len(own),
        )


def _late(beats: Iterable[LateBeat]) -> Iterator[Episode]:
    """By what made them late: a core, or something that was held. Nice work may be late."""
    for beat in beats:
        wait = beat.wait
        if wait is None or beat.seconds < _LATE_S or beat.missed < _MISSED:
            continue
        if wait.is_for_a_core and not wait.is_ordinary:
            continue
        yield Episode(
            EpisodeKind.TASK_LATE,
            wait.cpu if wait.is_for_a_core else None,
            None,
            *beat.span,
            beat.seconds,
            "a thread with a steady rhythm was late by up to {wait_ms:,.0f} ms",
            "late_beats",
            is_strong=False,
            subject=None if wait.is_for_a_core else wait.subject,
            amount=1,
        )


def _is_hung(waits: Sequence[TaskWait]) -> bool:
    """An incident whatever the reason; threads of the kernel may wait like this by trade."""
    kinds = (LOCK, DEVICE, WRITEBACK, OTHER, CHILD, ANSWER, MEMORY_LIMIT)
    own = [wait for wait in waits if wait.channel.kind in kinds and wait.task.policy != "kernel"]
    again = [wait.seconds for wait in own if wait.seconds >= _AGAIN_S]
    return any(
        wait.seconds >= (_HUNG_DISK_S if wait.channel.kind in (DEVICE, WRITEBACK) else _HUNG_S)
        for wait in own
    ) or (len(again) > 1 and sum(again) >= _HUNG_DISK_S)


def _together(waits: Iterable[tuple[object, TaskWait]]) -> Iterator[list[TaskWait]]:
    """Those of one key that overlap or follow each other closely."""
    latest: dict[object, list[TaskWait]] = {}
    for key, wait in waits:
        own = latest.get(key, [])
        if own and wait.from_ns > max(other.to_ns for other in own) + OVER_NS:
            yield own
            own = []
        latest[key] = [*own, wait]
    yield from latest.values()


def _span(waits: Sequence[TaskWait]) -> Span:
    return Span(min(wait.from_ns for wait in waits), max(wait.to_ns for wait in waits))
