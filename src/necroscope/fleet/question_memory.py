"""How much memory a question may take: a share of what the process may have, which in a container
is less than the machine's.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

# A collector answers two at a time, beside the intake and what is read ahead of them.
_SHARE: Final = 4
_MOST_BYTES: Final = 2 << 30


def question_bytes(root: Path = Path("/")) -> int:
    return min(_MOST_BYTES, min(_bounds_bytes(root)) // _SHARE)


def _bounds_bytes(root: Path) -> Iterator[int]:
    """Of the machine, and of each cgroup from ours up to the topmost that is seen here (Linux:
    admin-guide/cgroup-v2.rst).
    """
    yield os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with contextlib.suppress(OSError):
        for line in (root / "proc/self/cgroup").read_text("utf-8").splitlines():
            _, controllers, path = line.split(":", 2)
            if not controllers:
                yield from _cgroup_bounds_bytes(root / "sys/fs/cgroup", path, "memory.max")
            elif "memory" in controllers.split(","):
                yield from _cgroup_bounds_bytes(
                    root / "sys/fs/cgroup/memory", path, "memory.limit_in_bytes"
                )


def _cgroup_bounds_bytes(top: Path, path: str, name: str) -> Iterator[int]:
    """In a container without a cgroup namespace the path is the host's: only the topmost is there,
    and is our own.
    """
    names = [part for part in path.split("/") if part not in ("", "..")]
    for depth in range(len(names) + 1):
        # `max` is not a number.
        with contextlib.suppress(OSError, ValueError):
            yield int(top.joinpath(*names[:depth], name).read_text("utf-8"))
