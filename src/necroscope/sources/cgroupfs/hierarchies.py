"""Which cgroup hierarchies there are and where they are mounted: /proc/PID/mountinfo
(fs/proc_namespace.c) and /proc/cgroups.

v1 has a mount for each controller or group of controllers, v2 one for all; hybrid machines have
both. Below a host mount /proc/self/mountinfo tells the reader's own mounts, so PID 1's is read
first.
"""

import os
import re
from functools import lru_cache, partial
from pathlib import Path
from typing import Final, NamedTuple

from necroscope.errors import SourceUnavailable
from necroscope.sources.kept_file import KeptFile

_OCTAL: Final = re.compile(rb"\\([0-7]{3})")
# Options of a v1 mount that are not controllers (kernel/cgroup/cgroup-v1.c).
_OPTIONS: Final = frozenset(
    {
        "rw",
        "ro",
        "all",
        "none",
        "noprefix",
        "clone_children",
        "cpuset_v2_mode",
        "xattr",
        "favordynmods",
    }
)


class Hierarchy(NamedTuple):
    """One mounted hierarchy; `is_whole` is False where only a part of it is mounted, as in a
    container.
    """

    version: int
    controllers: tuple[str, ...]
    mount_point: bytes
    is_whole: bool


class Controller(NamedTuple):
    """A line of /proc/cgroups; hierarchy 0 is v2 or not mounted. `cgroups` counts the dead that are
    still held.
    """

    name: str
    hierarchy: int
    cgroups: int
    is_enabled: bool


def parse_mountinfo(data: bytes) -> list[Hierarchy]:
    """The cgroup mounts, each hierarchy once: the first mount of the whole of it, else of a
    part.
    """
    found: dict[tuple[int, tuple[str, ...]], Hierarchy] = {}
    for line in data.splitlines()[: data.count(b"\n")]:
        hierarchy = _parse_mount(line)
        if hierarchy is not None:
            key = (hierarchy.version, hierarchy.controllers)
            if key not in found or (hierarchy.is_whole and not found[key].is_whole):
                found[key] = hierarchy
    return list(found.values())


def _parse_mount(line: bytes) -> Hierarchy | None:
    place, _dash, kind = line.partition(b" - ")
    file_system, _source, options = [*kind.split(b" "), b"", b""][:3]
    if file_system not in (b"cgroup", b"cgroup2"):
        return None
    mount_root, mount_point = place.split(b" ")[3:5]
    names = (
        options.decode("utf-8", "backslashreplace").split(",") if file_system == b"cgroup" else []
    )
    controllers = tuple(
        name for name in names if name not in _OPTIONS and not name.startswith("release_agent=")
    )
    # From within a cgroup namespace the root of the hierarchy is shown as /.. or /../..
    is_whole = not set(mount_root.split(b"/")) - {b"", b".."}
    point = _OCTAL.sub(lambda match: bytes([int(match[1], 8)]), mount_point)
    return Hierarchy(2 if file_system == b"cgroup2" else 1, controllers, point, is_whole)


def parse_cgroups(data: bytes) -> list[Controller]:
    """The lines of /proc/cgroups. Since 6.12 (commit af000ce85293) controllers built without v1
    have none.
    """
    lines = [
        line.decode("ascii").split()
        for line in data.splitlines()[: data.count(b"\n")]
        if not line.startswith(b"#")
    ]
    return [
        Controller(name, int(hierarchy), int(cgroups), enabled == "1")
        for name, hierarchy, cgroups, enabled in lines
    ]


def read(root: Path) -> list[Hierarchy]:
    """The hierarchies of the node, their mount points below `root`."""
    failure = SourceUnavailable(
        "no cgroup hierarchy is mounted", "mount the node's /sys/fs/cgroup below --host-root"
    )
    for process in ("1", "self"):
        file = KeptFile(root / "proc" / process / "mountinfo")
        try:
            mounts = file.parse(partial(_mounted_below, os.fsencode(root).rstrip(b"/")))
        except SourceUnavailable as error:
            failure = error
            continue
        finally:
            file.close()
        if mounts:
            return list(mounts)
    raise failure


@lru_cache(maxsize=2)
def _mounted_below(root: bytes, mountinfo: bytes) -> tuple[Hierarchy, ...]:
    """It is asked for every few seconds, and mounts change seldom."""
    return tuple(_below(root, hierarchy) for hierarchy in parse_mountinfo(mountinfo))


def _below(root: bytes, hierarchy: Hierarchy) -> Hierarchy:
    """A cgroup namespace makes a part look like the whole; but release_agent is only, and
    cgroup.events never, at the root.
    """
    point = root + hierarchy.mount_point
    is_root = (
        os.path.exists(point + b"/release_agent")
        if hierarchy.version == 1
        else not os.path.exists(point + b"/cgroup.events")
    )
    return hierarchy._replace(mount_point=point, is_whole=hierarchy.is_whole and is_root)
