"""How much state of each kind the kernel held, and when: rows of `populations`, `memory` and
`cgroups` as series over time.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from necroscope.analysis.columns import ColumnArrays, Floats, Numbers, read
from necroscope.analysis.node import Node
from necroscope.model.span import Span
from necroscope.model.units import NS_PER_S

_PAGE_BYTES: Final = 4096
_SLAB: Final = "slab:"
_OF_MEMORY: Final = {
    "dentries": ("dentries", 1),
    "negative-dentries": ("dentries_negative", 1),
    "inodes": ("inodes", 1),
    "page-cache-pages": ("cached_bytes", _PAGE_BYTES),
    "anonymous-pages": ("anon_bytes", _PAGE_BYTES),
}
_OF_CGROUPS: Final = {"cgroups": "visible", "dead-cgroups": "dying"}
# As people call what a slab cache holds.
_WORDS: Final = {
    "slab:vm_area_struct": "memory mappings",
    "slab:file_lock_cache": "file locks",
    "slab:mnt_cache": "mounts",
    "slab:ip_fib_alias": "IPv4 routes",
    "slab:ip_fib_trie": "IPv4 routes",
    "slab:nf_conntrack": "tracked connections",
    "slab:inotify_inode_mark": "inotify watches",
    "slab:eventpoll_epi": "epoll items",
    "slab:posix_timers_cache": "POSIX timers",
    "slab:filp": "open files",
    "slab:task_struct": "threads",
    "slab:key_jar": "keys",
    "slab:kernfs_node_cache": "files of sysfs and cgroups",
    "slab:net_namespace": "network namespaces",
    "slab:sock_inode_cache": "sockets",
}


@dataclass(frozen=True, slots=True)
class Population:
    """Counts of one kind in order of time; between two rows the number has hardly changed, or it
    would have been reported.
    """

    kind: str
    time_ns: Numbers
    count: Floats

    def at(self, time_ns: Numbers | int) -> Floats:
        return np.asarray(np.interp(time_ns, self.time_ns, self.count), dtype=np.float64)

    def per_s(self, span: Span) -> float:
        """Growth over a stretch, on average."""
        seconds = (span[1] - span[0]) / NS_PER_S
        first, last = self.at(np.array(span))
        return float(last - first) / seconds if seconds > 0 else 0.0

    @property
    def names(self) -> tuple[str, ...]:
        """Of merged slab caches all of them."""
        return tuple(self.kind.removeprefix(_SLAB).split("/"))

    @property
    def parts(self) -> "tuple[Population, ...]":
        """Of merged slab caches each as if it were alone."""
        place = _SLAB if self.kind.startswith(_SLAB) else ""
        return tuple(Population(place + name, self.time_ns, self.count) for name in self.names)

    @property
    def words(self) -> str:
        """`memory mappings`, `tcp sockets`, `objects of the slab caches a and b`."""
        if not self.kind.startswith(_SLAB):
            return self.kind.replace("-", " ")
        known = [_WORDS[_SLAB + name] for name in self.names if _SLAB + name in _WORDS]
        if known:
            return " or ".join(dict.fromkeys(known))
        caches = "slab cache" if len(self.names) == 1 else "slab caches"
        return f"objects of the {caches} {' and '.join(self.names)}"


def merged(parts: Sequence[Population]) -> Population:
    """Caches of the same objects as one; the opposite of `parts`."""
    names = "/".join(name for one in parts for name in one.names)
    place = _SLAB if parts[0].kind.startswith(_SLAB) else ""
    return Population(place + names, parts[0].time_ns, parts[0].count)


@dataclass(frozen=True, slots=True)
class StateHolder:
    """A process and how much it held when it was last reported."""

    count: int
    pid: int
    comm: str
    cgroup: str | None


def all_populations(node: Node, span: Span) -> dict[str, Population]:
    """By kind, of a stretch that may be longer than the node's own."""
    return {one.kind: one for one in _all(node, span)}


def _all(node: Node, span: Span) -> Iterator[Population]:
    rows = read(node.recording, "populations", span, ("kind", "count", "pid"))
    rows = rows.at(~np.isfinite(rows["pid"])) if len(rows) else rows
    for kind in dict.fromkeys(rows["kind"].tolist() if len(rows) else ()):
        own = rows.at(rows["kind"] == kind)
        yield Population(str(kind), own["time"], own["count"])
    memory = node.columns("memory")
    for kind, (column, unit) in _OF_MEMORY.items():
        yield from _series(kind, memory, column, unit)
    cgroups = node.columns("cgroups")
    whole = cgroups.at(cgroups["path"] == "/") if len(cgroups) else cgroups
    for controller in ("memory", "unified"):
        own = whole.at(whole["controller"] == controller) if len(whole) else whole
        for kind, column in _OF_CGROUPS.items() if len(own) else ():
            yield from _series(kind, own, column, 1)


def _series(kind: str, rows: ColumnArrays, column: str, unit: int) -> Iterator[Population]:
    values = rows[column] if len(rows) and column in rows.values else np.zeros(0)
    known = np.isfinite(values)
    if known.any():
        yield Population(kind, rows["time"][known], values[known] / unit)


def holders(node: Node, kind: str, until_ns: int) -> list[StateHolder]:
    """Processes that held most of a kind, as last reported before a moment."""
    rows = node.columns("populations")
    if not len(rows):
        return []
    own = rows.at((rows["kind"] == kind) & np.isfinite(rows["pid"]) & (rows["time"] <= until_ns))
    latest = {int(pid): row for row, pid in enumerate(own["pid"])}
    found = [
        StateHolder(int(own["count"][row]), pid, str(own["comm"][row] or "?"), own["cgroup"][row])
        for pid, row in latest.items()
    ]
    return sorted(found, key=lambda one: -one.count)
