"""The directories of a cgroup hierarchy, without crossing into other mounts, bounded in number and
time.
"""

import os
from collections.abc import Callable
from typing import Final, NamedTuple

DIRECTORY_LIMIT: Final = 20_000
TIME_LIMIT_NS: Final = 50_000_000


class Walk(NamedTuple):
    """Paths below the top, `/` first, in the kernel's own bytes; `is_cut` when a limit ended the
    walk before it was whole.
    """

    paths: list[bytes]
    is_cut: bool


def walk(top: bytes, clock_ns: Callable[[], int], time_limit_ns: int = TIME_LIMIT_NS) -> Walk:
    """All directories below and with `top`.

    A directory with two links has no sub-directory (kernfs counts them, fs/kernfs/inode.c), so
    leaves, which are most, are never listed: each cgroup holds dozens of files.
    """
    deadline_ns = clock_ns() + time_limit_ns
    device = os.stat(top).st_dev
    paths = [b"/"]
    inner = [b""]
    while inner:
        parent = inner.pop()
        for name, has_children in _children(top + parent, device):
            path = parent + b"/" + name
            paths.append(path)
            if has_children:
                inner.append(path)
        if len(paths) > DIRECTORY_LIMIT or clock_ns() > deadline_ns:
            return Walk(paths[:DIRECTORY_LIMIT], is_cut=bool(inner) or len(paths) > DIRECTORY_LIMIT)
    return Walk(paths, is_cut=False)


def _children(directory: bytes, device: int) -> list[tuple[bytes, bool]]:
    """Name and whether it has sub-directories of its own; a cgroup that is removed meanwhile is
    none.
    """
    children = []
    try:
        with os.scandir(directory) as entries:
            names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    except FileNotFoundError:
        return []
    for name in names:
        try:
            status = os.lstat(directory + b"/" + name)
        except FileNotFoundError:
            continue
        if status.st_dev == device:
            children.append((name, status.st_nlink != 2))
    return children
