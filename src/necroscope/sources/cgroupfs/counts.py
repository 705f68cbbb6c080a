"""How many cgroups live and how many are dead but held: /proc/cgroups minus directories (v1),
cgroup.stat (v2; kernel/cgroup).

v1: the third field of /proc/cgroups falls only when a cgroup is released, so it counts zombies;
directories are what is visible. v2: cgroup.stat counts them for every sub-tree, which names the
slice that leaks; `nr_dying_subsys_memory` (6.12) memory's alone.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from necroscope.model.names import LINE_LIMIT, clean
from necroscope.model.reading import Row
from necroscope.sources.kept_file import read_once

_SUBTREE_LIMIT: Final = 500
_NO_LIMITS: Final = (None, None, None, None, None)


class Count(NamedTuple):
    """Cgroups below and with a path: those the kernel holds, those with a directory, those dead but
    held.
    """

    controller: str
    path: bytes
    tracked: int
    visible: int | None
    dying: int | None

    def row(self, time_ns: int) -> Row:
        path = clean(self.path, LINE_LIMIT)
        return (time_ns, self.controller, path, self.tracked, self.visible, self.dying, *_NO_LIMITS)


def parse_cgroup_stat(data: bytes) -> dict[str, int]:
    """cgroup.stat by name: nr_descendants, nr_dying_descendants and, since 6.12, both for each
    controller.
    """
    words = data.decode("ascii", "replace").split()
    return dict(zip(words[::2], map(int, words[1::2]), strict=True))


def count_v1(controller: str, tracked: int, visible: int | None) -> Count:
    """The whole of a v1 hierarchy. A cgroup made between the two counts must not give a negative
    number of dead.
    """
    return Count(
        controller, b"/", tracked, visible, None if visible is None else max(0, tracked - visible)
    )


def count_v2(path: bytes, stat: dict[str, int]) -> list[Count]:
    """A v2 sub-tree: all its cgroups, and where the kernel tells them apart, its memory cgroups."""
    living, dying = stat["nr_descendants"] + 1, stat["nr_dying_descendants"]
    counts = [Count("unified", path, living + dying, living, dying)]
    if "nr_dying_subsys_memory" in stat:
        living, dying = stat.get("nr_subsys_memory", 0), stat["nr_dying_subsys_memory"]
        counts.append(Count("memory", path, living + dying, living, dying))
    return counts


def read_v2(top: bytes, paths: list[bytes]) -> Iterator[Count]:
    """Counts of the root, and of each sub-tree of the first and second level that holds any
    dead.
    """
    stats = {b"/": _read_stat(top)}
    left = _SUBTREE_LIMIT
    for path in sorted(
        (path for path in paths if path != b"/" and path.count(b"/") <= 2),
        key=lambda path: path.count(b"/"),
    ):
        parent = path[: path.rindex(b"/")] or b"/"
        if left and stats.get(parent, {}).get("nr_dying_descendants"):
            left -= 1
            stats[path] = _read_stat(top + path)
    for path, stat in stats.items():
        if stat and (path == b"/" or stat["nr_dying_descendants"]):
            yield from count_v2(path, stat)


def _read_stat(directory: bytes) -> dict[str, int]:
    """Empty for a cgroup that is gone, or on a kernel before 4.14 that has no cgroup.stat."""
    data = read_once(directory + b"/cgroup.stat")
    return parse_cgroup_stat(data) if data and b"nr_dying_descendants" in data else {}
