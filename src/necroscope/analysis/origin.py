"""Where the dead cgroups come from: who makes and leaves them, how fast, since when, and when it
will hurt.
"""

import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from necroscope.analysis.attribution import container_of
from necroscope.analysis.columns import ColumnArrays, read
from necroscope.analysis.node import Node
from necroscope.analysis.origin_facts import with_package
from necroscope.analysis.pod_chain import with_pod
from necroscope.analysis.recreations import RecreationLoop
from necroscope.analysis.report import Origin
from necroscope.model.container_paths import parse_container, parse_unit
from necroscope.model.span import Span
from necroscope.model.units import NS_PER_S, format_duration

# Ids and counters in a name: what a loop makes again each time.
_CHANGING: Final = re.compile(r"[0-9a-f]{12,64}|\d+")
_LEAST_LEFT: Final = 3
# Restarts and dead cgroups that belong together are within this factor: a start may leave two, and
# some are released.
_ABOUT_AS_MANY: Final = 2
_NEAR_NS: Final = 86_400 * NS_PER_S
_RESTARTING: Final = (("unit", "units", "unit"), ("container", "containers", "name"))
# What a walk over this many takes on kernels that walk: 10,000 cost 0.7 s before v5.8, 68,000 cost
# 5 s on 5.4.
_HURTS_AT: Final = (
    (7_000, "a walk of half a second"),
    (70_000, "a walk of 5 s, in which network cards reset"),
)


@dataclass(frozen=True, slots=True)
class DeadCgroups:
    """Dead memory cgroups at a moment, and how many more they are than at the first row, `seconds`
    before.
    """

    count: int
    live: int | None
    grown: int
    seconds: float

    @property
    def per_hour(self) -> float:
        return self.grown / self.seconds * 3600 if self.seconds > 0 else 0.0

    def describe_growth(self) -> str | None:
        """Since when, and when it will hurt, if they always come as fast as in what was recorded;
        None if they hardly grow.
        """
        if self.grown < _LEAST_LEFT or self.per_hour <= 0:
            return None
        text = f"at this rate the leak began {self._time_for(self.count)} ago"
        for count, walk in _HURTS_AT:
            if self.count < count:
                in_time = self._time_for(count - self.count)
                return f"{text} and reaches {count:,} ({walk}) in {in_time}"
        return text

    def _time_for(self, count: int) -> str:
        return format_duration(round(count / self.per_hour * 3600 * NS_PER_S))


@dataclass(frozen=True, slots=True)
class Producer:
    """Who leaves them behind; in words how that is known, and the table that tells it."""

    origin: Origin
    words: str
    table: str


@dataclass(frozen=True, slots=True)
class Leak:
    """Cgroups of one kind of path that were removed and not released in the stretch that was
    recorded.
    """

    pattern: str
    paths: tuple[str, ...]
    left: int
    seconds: float


def dead_cgroups(node: Node, until_ns: int) -> DeadCgroups | None:
    """From the rows of the whole hierarchy; None if no row tells how many are dead. Where the
    stretch has none, the count nearest to it tells: an investigator counts once, afterwards.
    """
    rows = _of_hierarchy(node.columns("cgroups"))
    rows = rows.at(rows["time"] <= until_ns) if len(rows) else rows
    dead = _count_dead(rows) if len(rows) else np.zeros(0)
    known = np.flatnonzero(np.isfinite(dead))
    if not len(known):
        return _count_dead_nearby(node, until_ns)
    first, last = known[0], known[-1]
    live = rows["visible"][last]
    seconds = float(rows["time"][last] - rows["time"][first]) / NS_PER_S
    grown = max(0, int(dead[last] - dead[first]))
    return DeadCgroups(int(dead[last]), int(live) if np.isfinite(live) else None, grown, seconds)


def _of_hierarchy(rows: ColumnArrays) -> ColumnArrays:
    """Those of the memory hierarchy's root, else of all of cgroup v2."""
    if not len(rows):
        return rows
    is_root = (rows["path"] == "/") & np.isin(rows["controller"].astype(str), ("memory", "unified"))
    rows = rows.at(is_root)
    is_memory = rows["controller"] == "memory"
    return rows.at(is_memory) if is_memory.any() else rows


def _count_dead_nearby(node: Node, until_ns: int) -> DeadCgroups | None:
    """The count nearest in time within a day: the dead come and go slowly."""
    if not node.tables.get("cgroups"):
        return None
    around = Span(until_ns - _NEAR_NS, until_ns + _NEAR_NS)
    names = ("time", "controller", "path", "tracked", "visible", "dying")
    rows = _of_hierarchy(read(node.recording, "cgroups", around, names))
    dead = _count_dead(rows) if len(rows) else np.zeros(0)
    known = np.flatnonzero(np.isfinite(dead))
    if not len(known):
        return None
    nearest = known[np.argmin(np.abs(rows["time"][known] - until_ns))]
    live = rows["visible"][nearest]
    return DeadCgroups(int(dead[nearest]), int(live) if np.isfinite(live) else None, 0, 0.0)


def leaks(node: Node) -> list[Leak]:
    """Who leaves dead cgroups behind, the worst first: removed in this stretch and not released in
    it.
    """
    rows = node.columns("cgroup_ledger")
    if not len(rows):
        return []
    # Before Linux 5.5 (commit 743210386c03) an id is given to the next cgroup as soon as its owner
    # is released.
    held: dict[tuple[int, int], str] = {}
    keys = zip(rows["hierarchy"].tolist(), rows["cgroup_id"].tolist(), strict=True)
    for key, action, path in zip(keys, rows["action"], rows["path"], strict=True):
        if action == "removed":
            held[key] = str(path)
        elif action == "released":
            held.pop(key, None)
    left: dict[str, list[str]] = {}
    for path in held.values():
        left.setdefault(_pattern(path), []).append(path)
    seconds = float(node.span[1] - node.span[0]) / NS_PER_S
    found = [Leak(name, tuple(paths), len(paths), seconds) for name, paths in left.items()]
    return sorted(
        (leak for leak in found if leak.left >= _LEAST_LEFT), key=lambda leak: -leak.left
    )[:5]


def producer(node: Node) -> Producer | None:
    """The unit, container or cgroup that leaks."""
    found = _producer(node)
    return replace(found, origin=with_pod(node, found.origin)) if found is not None else None


def _producer(node: Node) -> Producer | None:
    found = leaks(node)
    if not found:
        return _crash_loop(node) or _dying_subtree(node)
    leak, origin = found[0], _leaker(found[0], node)
    text = (
        f"{leak.left} cgroups {leak.pattern} were removed but not released in {leak.seconds:.0f} s"
    )
    recreated = _recreation_of(origin, node)
    if recreated is not None:
        return Producer(_maker(recreated, node), f"{text}; {_describe(recreated)}", "events")
    count = next(
        (
            dict(restarts(node, *where)).get(origin.name)
            for kind, *where in _RESTARTING
            if kind == origin.kind
        ),
        None,
    )
    return Producer(
        origin, f"{text}; {origin.name} restarted {count} times" if count else text, "cgroup_ledger"
    )


def loop_of(origin: Origin, node: Node) -> RecreationLoop | None:
    """The containers that a unit, or the container itself, comes back as."""
    if origin.kind == "unit":
        return next((loop for loop in node.recreations if loop.unit == origin.name), None)
    return _recreation_of(origin, node)


def _recreation_of(origin: Origin, node: Node) -> RecreationLoop | None:
    if origin.kind != "container":
        return None
    return next((loop for loop in node.recreations if loop.name == origin.name), None)


def _maker(loop: RecreationLoop, node: Node) -> Origin:
    """What to act on: a container that is removed comes back, so it is the unit, where it is
    known.
    """
    container = ("container", loop.title)
    image = (("image", loop.image),) if loop.image else ()
    if loop.unit is None:
        return Origin(*container, image)
    return with_package(node, Origin("unit", loop.unit, (container, *image)))


def _describe(loop: RecreationLoop) -> str:
    by = f" by {loop.unit} ({loop.known_by})" if loop.unit else ""
    end = loop.describe_end()
    return f"container {loop.title} is {loop.describe()}{by}{f', {end}' if end else ''}"


def restarts(node: Node, table: str, name_column: str) -> list[tuple[str, int]]:
    """Units or containers that restarted in the stretch, with how often, the worst first."""
    rows = node.columns(table)
    if not len(rows):
        return []
    found = []
    for name in dict.fromkeys(name for name in rows[name_column].tolist() if name):
        counts = rows["restarts"][rows[name_column] == name]
        counts = counts[np.isfinite(counts)]
        if len(counts) and counts.max() > counts.min():
            found.append((str(name), int(counts.max() - counts.min())))
    return sorted(found, key=lambda item: -item[1])


def _crash_loop(node: Node) -> Producer | None:
    """Who restarted about as often as cgroups died: a single restart says nothing."""
    dead = dead_cgroups(node, node.span[1])
    if dead is None or dead.grown < _LEAST_LEFT:
        return None
    for loop in node.recreations:
        if _are_about_as_many(len(loop.containers), dead.grown):
            text = f"{_describe(loop)}, while {dead.grown} cgroups died"
            return Producer(_maker(loop, node), text, "events")
    for kind, table, column in _RESTARTING:
        for name, count in restarts(node, table, column):
            if _are_about_as_many(count, dead.grown):
                text = f"{kind} {name} restarted {count} times while {dead.grown} cgroups died"
                return Producer(Origin(kind, name), text, table)
    return None


def _are_about_as_many(starts: int, died: int) -> bool:
    return died <= starts * _ABOUT_AS_MANY and starts <= died * _ABOUT_AS_MANY


def _dying_subtree(node: Node) -> Producer | None:
    """On cgroup v2 each directory counts its own dead: the deepest that has nearly all of them."""
    rows = node.columns("cgroups")
    rows = (
        rows.at((rows["path"] != "/") & (np.nan_to_num(rows["dying"]) > 0)) if len(rows) else rows
    )
    if not len(rows):
        return None
    latest = rows.at(rows["time"] == rows["time"].max())
    most = float(latest["dying"].max())
    paths = [
        str(path)
        for path, dying in zip(latest["path"], latest["dying"], strict=True)
        if dying >= 0.5 * most
    ]
    path = max(paths, key=len)
    owner = _owner(path, node) or Origin("cgroup", path)
    return Producer(owner, f"{int(most)} dead cgroups lie below {path}", "cgroups")


def _leaker(leak: Leak, node: Node) -> Origin:
    """Whose cgroups they are, if most are of one unit or container; else what they lie below."""
    owners = Counter(owner for path in leak.paths if (owner := _owner(path, node)) is not None)
    if owners and owners.most_common(1)[0][1] > leak.left / 2:
        return owners.most_common(1)[0][0]
    above = leak.paths[-1].rpartition("/")[0]
    return _owner(above, node) or Origin("cgroup", above or "/")


def _owner(path: str, node: Node) -> Origin | None:
    container = container_of(path, node)
    if container is not None:
        found = parse_container(path)
        return Origin("container", container) if found else None
    unit = parse_unit(path)
    return Origin("unit", unit) if unit is not None else None


def _pattern(path: str) -> str:
    return _CHANGING.sub("*", path)


def _count_dead(rows: ColumnArrays) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """As the kernel counts them, else those it holds without the directories that can be seen."""
    return np.where(np.isfinite(rows["dying"]), rows["dying"], rows["tracked"] - rows["visible"])
