"""What on its node explains that a member stood: a verdict that speaks of its core, its limit or
its wait, or the one program that was in the way.

That something else went wrong on the node in the same seconds explains nothing.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from necroscope.analysis.jobs.member import (
    BLOCKED,
    EDGE_NS,
    STARVED,
    JobNode,
    Member,
    NodeIncident,
    Stop,
)

# The group that is throttled or squeezed is the victim's own: the limit is to blame.
_QUOTA, _SQUEEZE = "cpu-quota-throttle", "cpuset-squeeze"
_OF_ALL_CORES: Final = frozenset({"vm-steal"})
# Tasks that read or write stand, of any program.
_STANDING_IO: Final = frozenset({"blocked-io", "writeback-stall"})
# What lasts for less than this part of a stop does not explain it.
_LEAST_PART: Final = 0.3


@dataclass(frozen=True, slots=True)
class Explanation:
    culprit: str
    incident: NodeIncident | None = None


def explain(member: Member, node: JobNode | None, own: Collection[int]) -> Explanation | None:
    """`own` are the members of the job on the node: what they do to each other is no machine's
    fault.
    """
    stop = member.stop
    if stop is None or stop.how not in (STARVED, BLOCKED):
        return None
    by = stop.by if stop.by_pid not in own else None
    near = [
        one
        for one in (node.incidents if node is not None else ())
        if one.is_sure and _part(one, stop) >= _LEAST_PART
    ]
    near.sort(key=lambda one: -_part(one, stop))
    for one in near:
        if _speaks_of_limit(one, stop) and _is_own_group(one, member):
            return Explanation(one.origin or one.cause, one)
    for one in near if not stop.is_throttled else ():
        is_own = one.culprit_pid in own
        if _speaks_of_core(one, stop, by) and not is_own:
            return Explanation(by or one.culprit or one.origin or one.cause, one)
        if _speaks_of_wait(one, stop):
            culprit = one.origin if is_own else one.culprit
            return Explanation(culprit or one.cause, one)
    return Explanation(by) if by is not None else None


def _part(incident: NodeIncident, stop: Stop) -> float:
    """Of the stop, with the edges of the incident."""
    from_ns = max(incident.from_ns - EDGE_NS, stop.from_ns)
    to_ns = min(incident.to_ns + EDGE_NS, stop.to_ns)
    return max(0, to_ns - from_ns) / max(1, stop.to_ns - stop.from_ns)


def _speaks_of_limit(incident: NodeIncident, stop: Stop) -> bool:
    """An incident may hold several things that follow each other: that there was a throttle in it
    does not tell that there was one in the stop.
    """
    if incident.cause == _QUOTA:
        return stop.is_throttled
    return incident.cause == _SQUEEZE and stop.how == STARVED and not stop.is_throttled


def _is_own_group(incident: NodeIncident, member: Member) -> bool:
    kind, _, name = (incident.origin or "").partition(" ")
    groups = {incident.culprit_cgroup, name if kind == "cgroup" else None} - {None, "", "/"}
    path = f"{member.cgroup or ''}/"
    return any(path.startswith(f"{group}/") for group in groups)


def _speaks_of_core(incident: NodeIncident, stop: Stop, by: str | None) -> bool:
    """A verdict on the core that names another than who is known to have been in the way is about
    something else.
    """
    if stop.how != STARVED:
        return False
    if incident.core is None:
        return incident.cause in _OF_ALL_CORES
    is_here = stop.core is None or incident.core == stop.core
    return is_here and (by is None or not incident.culprit or _is_same(by, incident.culprit))


def _speaks_of_wait(incident: NodeIncident, stop: Stop) -> bool:
    if stop.how != BLOCKED:
        return False
    is_holder = stop.by_pid is not None and incident.culprit_pid == stop.by_pid
    return is_holder or (stop.by_pid is None and incident.cause in _STANDING_IO)


def _is_same(who: str, other: str) -> bool:
    """`app[17] (rr)` and `app[21]` are one program."""
    return _program(who) == _program(other)


def _program(who: str) -> str:
    return who.partition("[")[0].partition(" (")[0]
