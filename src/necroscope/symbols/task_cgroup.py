"""In which cgroup a task is, by its path from the node's root: /proc/PID/cgroup (cgroups(7),
cgroup_namespaces(7)).

The kernel writes paths there as the reader's cgroup namespace sees them. A container with one of
its own, the default on cgroup v2, reads `/` of itself and `/../../system.slice/x.service` of
others, while directories, tracepoints, systemd and container runtimes tell paths from the node's
root. So it is found once where our namespace begins.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from necroscope.model.names import LINE_LIMIT, clean
from necroscope.symbols.target_files import read_bounded

_MOUNTINFO_LIMIT_BYTES: Final = 16 << 20
# Of each level above our namespace; a listing takes some 50 us.
_LISTED_LIMIT: Final = 5_000
_MEMORY: Final = b"memory"
_UNIFIED: Final = b""


def parse_cgroup(text: bytes, own_roots: Mapping[bytes, bytes]) -> str | None:
    """The path of the v1 memory controller where it is mounted, else of cgroup v2; `own_roots` is
    of `find_own_roots`.
    """
    unified = None
    # Not splitlines: a cgroup's name may hold any separator but the newline, and must not forge a
    # line.
    for line in text.split(b"\n"):
        _, _, rest = line.partition(b":")
        controllers, _, path = rest.partition(b":")
        if _MEMORY in controllers.split(b","):
            return clean(_from_the_nodes_root(path, own_roots.get(_MEMORY)), LINE_LIMIT)
        if not controllers and path:
            unified = path
    return (
        clean(_from_the_nodes_root(unified, own_roots.get(_UNIFIED)), LINE_LIMIT)
        if unified is not None
        else None
    )


def find_own_roots(proc: Path) -> dict[bytes, bytes]:
    """The path at which our cgroup namespace begins, by hierarchy; none where that is its root, or
    cannot be found.

    A container's own cgroup mount begins there and is shown with the root `/`. A mount of the
    node's is shown with one `/..` for each level between the two. This many levels below the latter
    lies a directory with the former's inode.
    """
    found: dict[bytes, bytes] = {}
    for hierarchy, points in _mount_points(
        read_bounded(proc / "self/mountinfo", _MOUNTINFO_LIMIT_BYTES) or b""
    ).items():
        levels = max(points)
        path = _find_below(points[levels], levels, points[0]) if levels and 0 in points else None
        if path is not None:
            found[hierarchy] = path
    return found


def _from_the_nodes_root(path: bytes, own_root: bytes | None) -> bytes:
    if own_root is None:
        return path
    parts = own_root.split(b"/")
    rest = path
    # A name may begin with two dots, but not be them.
    while rest == b"/.." or rest.startswith(b"/../"):
        parts.pop()
        rest = rest[3:]
        if not parts:
            return path  # above what is mounted, which then was not a node's root
    return b"/".join(parts) + (b"" if rest == b"/" else rest) or b"/"


def _mount_points(mountinfo: bytes) -> dict[bytes, dict[int, bytes]]:
    """Of the two hierarchies that count, those mounted at the beginning of our namespace, 0, or
    this many levels above it.
    """
    found: dict[bytes, dict[int, bytes]] = {}
    for line in mountinfo.split(b"\n"):
        place, _, kind = line.partition(b" - ")
        file_system, _, options = kind.partition(b" ")
        if file_system == b"cgroup2" or (
            file_system == b"cgroup" and _MEMORY in options.rpartition(b" ")[2].split(b",")
        ):
            root, point = place.split(b" ")[3:5]
            above = [part for part in root.split(b"/") if part]
            if set(above) <= {b".."}:
                found.setdefault(_UNIFIED if file_system == b"cgroup2" else _MEMORY, {}).setdefault(
                    len(above), point
                )
    return found


def _find_below(top: bytes, levels: int, wanted: bytes) -> bytes | None:
    """The path below `top` of the directory that is mounted as `wanted`, this many levels down."""
    try:
        status = os.stat(wanted)
        if status.st_dev != os.stat(top).st_dev:
            return None
    except OSError:
        return None
    parents = [top]
    for _ in range(levels - 1):
        parents = [
            child.path
            for parent in parents[:_LISTED_LIMIT]
            for child in _children(parent)
            if _has_children(child)
        ]
    for parent in parents[:_LISTED_LIMIT]:
        for child in _children(parent):
            if child.inode() == status.st_ino:
                return child.path.removeprefix(top)
    return None


def _children(directory: bytes) -> list[os.DirEntry[bytes]]:
    try:
        with os.scandir(directory) as entries:
            return [entry for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:  # removed meanwhile
        return []


def _has_children(entry: os.DirEntry[bytes]) -> bool:
    """kernfs counts sub-directories as links (fs/kernfs/inode.c): leaves, most of all and full of
    files, need not be listed.
    """
    try:
        return entry.stat(follow_symlinks=False).st_nlink != 2
    except OSError:
        return False
