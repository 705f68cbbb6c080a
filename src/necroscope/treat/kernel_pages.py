"""Whose each page of memory is: /proc/kpagecgroup and /proc/kpageflags
(Documentation/admin-guide/mm/pagemap.rst), one number of 8 bytes per page frame.

The kernel gives the cgroup of a page as an inode number. For a page of a dead cgroup it is that of
the nearest ancestor that is alive (mm/memcontrol.c, page_cgroup_ino): a live cgroup without pages
of its own that has pages nevertheless has those of its dead children.
"""

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from necroscope.errors import PermissionMissing, SourceUnavailable

Frames = npt.NDArray[np.uint64]
# A read of this many frames keeps its core for about a millisecond.
_BITE: Final = 8_192
_WORD: Final = 8
# Frames this near to each other are read in one go.
_NEAR: Final = 64
_DIRTY, _LRU, _MAPPED, _ANONYMOUS, _SWAPBACKED, _UNEVICTABLE = (
    1 << bit for bit in (4, 5, 11, 12, 14, 18)
)


class PageKind(Enum):
    """`SHARED` are pages of tmpfs and shared memory, which no reclaim frees without swap."""

    CACHE = "page cache"
    SHARED = "tmpfs and shared memory"
    ANONYMOUS = "memory of processes"


class KernelPages:
    """Open until `close`; the kernel lets only root read."""

    def __init__(self, root: Path = Path("/")) -> None:
        self._owners = _open(root / "proc/kpagecgroup")
        self._flags = _open(root / "proc/kpageflags")

    def close(self) -> None:
        os.close(self._owners)
        os.close(self._flags)

    def owners(self, frames: Frames) -> Frames:
        """The inode number of the live cgroup that each page is charged to, or its dead child; 0
        is none.
        """
        return _read_at(self._owners, frames)

    def flags(self, frames: Frames) -> Frames:
        return _read_at(self._flags, frames)

    def count(self, pause: Callable[[float], None] = time.sleep) -> dict[int, Counter[PageKind]]:
        """Of all of memory: pages by owner and kind. It gives its core away after each bite."""
        found: dict[int, Counter[PageKind]] = {}
        for owners, flags in self._bites():
            began = time.thread_time()
            is_listed = (flags & np.uint64(_LRU)) != 0
            kinds = {
                PageKind.ANONYMOUS: (flags & np.uint64(_ANONYMOUS)) != 0,
                PageKind.SHARED: (flags & np.uint64(_ANONYMOUS | _SWAPBACKED))
                == np.uint64(_SWAPBACKED),
                PageKind.CACHE: (flags & np.uint64(_ANONYMOUS | _SWAPBACKED)) == 0,
            }
            for kind, is_kind in kinds.items():
                numbers, counts = np.unique(owners[is_kind & is_listed], return_counts=True)
                for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
                    found.setdefault(number, Counter())[kind] += count
            pause(time.thread_time() - began)
        return found

    def _bites(self) -> Iterator[tuple[Frames, Frames]]:
        first = 0
        while True:
            owners = _words(os.pread(self._owners, _BITE * _WORD, first * _WORD))
            flags = _words(os.pread(self._flags, _BITE * _WORD, first * _WORD))
            length = min(len(owners), len(flags))
            if not length:
                return
            yield owners[:length], flags[:length]
            first += length


def is_dirty(flags: Frames) -> npt.NDArray[np.bool_]:
    return np.asarray((flags & np.uint64(_DIRTY)) != 0)


def is_held(flags: Frames) -> npt.NDArray[np.bool_]:
    """Locked into memory: no advice drops such a page."""
    return np.asarray((flags & np.uint64(_UNEVICTABLE)) != 0)


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except PermissionError:
        raise PermissionMissing(f"{path} is readable by root only", "run as root") from None
    except OSError as error:
        raise SourceUnavailable(
            f"cannot read {path}: {error.strerror}",
            "the kernel needs CONFIG_PROC_PAGE_MONITOR and CONFIG_MEMCG to tell whose a page is",
        ) from None


def _words(data: bytes) -> Frames:
    return np.frombuffer(data[: len(data) // _WORD * _WORD], dtype=np.uint64)


def _read_at(descriptor: int, frames: Frames) -> Frames:
    """The word of each frame: sorted, and neighbours by one read."""
    order = np.argsort(frames, kind="stable")
    ordered = frames[order].astype(np.int64)
    found = np.zeros(len(frames), dtype=np.uint64)
    breaks = np.flatnonzero(np.diff(ordered) > _NEAR) + 1 if len(ordered) else np.zeros(0, int)
    for part in np.split(np.arange(len(ordered)), breaks):
        for start in range(0, len(part), _BITE):
            places = part[start : start + _BITE]
            if not len(places):
                continue
            first, last = int(ordered[places[0]]), int(ordered[places[-1]])
            words = _words(os.pread(descriptor, (last - first + 1) * _WORD, first * _WORD))
            within = ordered[places] - first
            is_there = within < len(words)
            found[order[places[is_there]]] = words[within[is_there]]
    return found
