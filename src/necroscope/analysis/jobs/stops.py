"""How a member stood before its end: from what it got done each tick, and from its waits.

tick        1     2     3     4     5     6        share of a core, share of waiting for one
cpu        .97   .98   .05   .04   .05   .05
delay      .01   .01   .94   .95   .95   .95
class       running     ------- starved -------
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from necroscope.analysis.jobs.member import (
    BLOCKED,
    FROZEN,
    HELD,
    QUOTA_OF,
    RUNNING,
    STARVED,
    WAITING,
    Stop,
)
from necroscope.model.units import NS_PER_S

# Two tasks that share a core fairly wait half of the time, which slows and does not stop.
_STARVED_RATIO: Final = 0.6
_IDLE_RATIO: Final = 0.05
# Runnable, seen without any time: its wait is booked only when it ends.
_NO_TIME_RATIO: Final = 0.1
_LEAST_NS: Final = 3 * NS_PER_S
# Ticks of another class within a stretch: a rank that is starved gets a turn now and then.
_BETWEEN_NS: Final = 2_500_000_000
# A job dies within this long of what held its member, or its own time-out was never at stake.
_AT_THE_END_NS: Final = 15 * NS_PER_S
# Of a wait: one that ran for less of it was not what was in the way.
_LEAST_RUN: Final = 0.1
# Of a stop: throttled for less of it, its quota was not what held it.
_LEAST_THROTTLED: Final = 0.75
LOOK_BACK_NS: Final = 180 * NS_PER_S


class ProgressTick(NamedTuple):
    """A row of `job_progress`."""

    time_ns: int
    core: int
    state: str
    elapsed_ns: int
    cpu_ns: int
    delay_ns: int | None


class MemberWait(NamedTuple):
    """Of one of its threads: for a core, or asleep for what another task has (`is_asleep`)."""

    from_ns: int
    to_ns: int
    core: int
    by: str | None
    by_pid: int | None
    by_cgroup: str | None
    by_label: str | None = None
    by_ran_ns: int | None = None
    is_asleep: bool = False

    @property
    def is_in_the_way(self) -> bool:
        """A throttled task waits while others run now and then, and the core is idle."""
        ran_ns = self.by_ran_ns
        return ran_ns is None or ran_ns >= _LEAST_RUN * (self.to_ns - self.from_ns)


class Throttle(NamedTuple):
    """A row of a member's cgroup, or of one above it: for how long within a stretch it had used up
    its CPU quota.
    """

    from_ns: int
    to_ns: int
    throttled_ns: int
    cgroup: str


def stop_of(
    ticks: Sequence[ProgressTick],
    waits: Sequence[MemberWait],
    until_ns: int,
    throttles: Sequence[Throttle] = (),
) -> Stop | None:
    """The longest stretch in which something held it, of those that reach `until_ns`; else the one
    in which it waited at the end: one that waits for a peer then was not what the peer waited for.
    Else the longest of all. None if it worked all the time.
    """
    recent = [tick for tick in ticks if until_ns - LOOK_BACK_NS <= tick.time_ns <= until_ns]
    stretches = [one for one in _stretches(recent) if one.to_ns - one.from_ns >= _LEAST_NS]
    held = [one for one in stretches if one.how in HELD]
    late = [one for one in held if one.to_ns >= until_ns - _AT_THE_END_NS]
    if late:
        return _with_blocker(max(late, key=_length_ns), waits, throttles)
    waiting = [one for one in stretches if one.how == WAITING]
    asleep = _asleep(waits, until_ns)
    if asleep is not None or (waiting and waiting[-1].to_ns >= until_ns - _AT_THE_END_NS):
        return asleep or waiting[-1]
    if held:
        return _with_blocker(max(held, key=_length_ns), waits, throttles)
    return waiting[-1] if waiting else None


def _length_ns(stop: Stop) -> int:
    return stop.span.length_ns


def _asleep(waits: Sequence[MemberWait], until_ns: int) -> Stop | None:
    """The longest sleep for something that another task has: it looks like a wait for a peer."""
    found = [
        one
        for one in waits
        if one.is_asleep
        and one.by is not None
        and one.to_ns - one.from_ns >= _LEAST_NS
        and until_ns - LOOK_BACK_NS <= one.to_ns
        and one.from_ns <= until_ns
    ]
    if not found:
        return None
    wait = max(found, key=lambda one: one.to_ns - one.from_ns)
    to_ns = min(wait.to_ns, until_ns)
    who = wait.by_label, wait.by_pid, wait.by_cgroup
    return Stop(BLOCKED, wait.from_ns, to_ns, None, *who)


def _class(tick: ProgressTick) -> str:
    elapsed_ns = max(1, tick.elapsed_ns)
    worked, delayed = tick.cpu_ns / elapsed_ns, (tick.delay_ns or 0) / elapsed_ns
    if tick.state in "Tt":
        return FROZEN
    if delayed >= _STARVED_RATIO or (tick.state == "R" and worked < _NO_TIME_RATIO):
        return STARVED
    if worked >= _IDLE_RATIO:
        return RUNNING
    return BLOCKED if tick.state == "D" else WAITING


def _stretches(ticks: Iterable[ProgressTick]) -> list[Stop]:
    found: list[Stop] = []
    for tick in ticks:
        how, from_ns = _class(tick), tick.time_ns - tick.elapsed_ns
        # A wait of several seconds is booked in the tick in which it ends.
        if how == STARVED and tick.delay_ns is not None:
            from_ns = min(from_ns, tick.time_ns - tick.delay_ns)
        same = next((one for one in reversed(found) if one.how == how), None)
        if same is not None and from_ns - same.to_ns <= _BETWEEN_NS:
            place = found.index(same)
            found[place] = Stop(how, min(same.from_ns, from_ns), tick.time_ns, tick.core)
            if how in HELD:
                # What lay between belongs to it.
                del found[place + 1 :]
        else:
            found.append(Stop(how, from_ns, tick.time_ns, tick.core))
    return found


def _with_blocker(
    stop: Stop, waits: Sequence[MemberWait], throttles: Sequence[Throttle] = ()
) -> Stop:
    """Its own quota if it was throttled for most of it; else the process, else the program, that
    was in the way for most of the time that was waited.
    """
    limited = {one.cgroup for one in throttles} if stop.how == STARVED else set()
    for cgroup in sorted(limited, key=_depth, reverse=True):
        if _throttled_ns(stop, cgroup, throttles) >= _LEAST_THROTTLED * stop.span.length_ns:
            by = f"{QUOTA_OF}{cgroup}"
            return Stop(stop.how, stop.from_ns, stop.to_ns, stop.core, by, None, cgroup)
    is_asleep = stop.how == BLOCKED
    near = [
        (wait, within_ns)
        for wait in waits
        if wait.is_asleep == is_asleep
        and (within_ns := min(wait.to_ns, stop.to_ns) - max(wait.from_ns, stop.from_ns)) > 0
    ]
    total_ns = sum(within_ns for _, within_ns in near)
    for is_process in (True, False):
        of_each: dict[tuple[Any, ...], list[tuple[MemberWait, int]]] = {}
        for wait, within_ns in near:
            if wait.by is None or not wait.is_in_the_way:
                continue
            key = wait.core, wait.by, wait.by_cgroup, wait.by_pid if is_process else None
            of_each.setdefault(key, []).append((wait, within_ns))
        most = max(of_each.values(), key=_waited_ns, default=[])
        # One that was in the way now and then is not who held it.
        waited_ns = _waited_ns(most)
        if most and 2 * waited_ns >= total_ns and 4 * waited_ns >= stop.span.length_ns:
            return _held_by(stop, [wait for wait, _ in most])
    return stop


def _depth(cgroup: str) -> tuple[int, str]:
    """Of a limit and one above it that held at the same time, the member's own is to change."""
    return cgroup.count("/"), cgroup


def _throttled_ns(stop: Stop, cgroup: str, throttles: Sequence[Throttle]) -> int:
    """At most: rows are longer than many stops, and a member that is throttled stands, so what a
    row has of it is taken for the part in which it stood. The kernel adds up its cores.
    """
    return sum(
        min(one.throttled_ns, max(0, min(one.to_ns, stop.to_ns) - max(one.from_ns, stop.from_ns)))
        for one in throttles
        if one.cgroup == cgroup
    )


def _waited_ns(waits: Sequence[tuple[MemberWait, int]]) -> int:
    return sum(within_ns for _, within_ns in waits)


def _held_by(stop: Stop, waits: Sequence[MemberWait]) -> Stop:
    wait, pids = waits[0], {one.by_pid for one in waits}
    core = stop.core if wait.is_asleep else wait.core
    by = wait.by_label if len(pids) == 1 else f"{wait.by} ({len(pids)} processes)"
    by_pid = wait.by_pid if len(pids) == 1 else None
    return Stop(stop.how, stop.from_ns, stop.to_ns, core, by, by_pid, wait.by_cgroup)
