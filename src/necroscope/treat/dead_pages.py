"""What pins dead memory cgroups: the live cgroups whose dead children still have pages, and the
files and segments those pages belong to.

The kernel reports a page of a dead cgroup as its nearest live ancestor's. An ancestor without a
process and (on cgroup v1, where that is reported) without pages of its own has only such pages.
Where it has its own as well the two cannot be told apart, and its pages are left alone: the root's
always.
"""

import os
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np

from necroscope.errors import SourceUnavailable, UsageError
from necroscope.model.names import clean
from necroscope.sources.cgroupfs import hierarchies
from necroscope.sources.cgroupfs.counts import read_v2
from necroscope.treat.candidates import (
    CandidateFile,
    SharedSegment,
    files,
    read_mounts,
    read_segments,
    shown,
)
from necroscope.treat.kernel_pages import KernelPages, PageKind, is_dirty, is_held
from necroscope.treat.mapped_pages import PageTable, Places

# Of an ancestor's pages, those that may be its own: statistics are kept per core and lag behind.
_OWN_RATIO: Final = 0.02
_FOUND: Final = 0.999
LOOK_S: Final = 120.0
_OPEN: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NOATIME
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class LiveAncestor:
    """A live cgroup whose dead children have pages, by kind. `path` is that of its directory."""

    inode: int
    path: str
    pages: Counter[PageKind]

    @property
    def total(self) -> int:
        return sum(self.pages.values())


@dataclass(frozen=True, slots=True)
class PinningFile:
    """`places` are the numbers of its pages that dead cgroups are charged for, `ancestor` whose
    children they are. `device` is the file system that it was found on. `segment` is set for
    System V shared memory, which has no path.
    """

    path: bytes
    places: Places
    ancestor: int
    is_memory: bool
    is_dirty: bool
    held: int
    device: int
    segment: SharedSegment | None = None

    @property
    def pages(self) -> int:
        return len(self.places)

    @property
    def name(self) -> str:
        if self.segment is not None:
            return f"shared memory segment {self.segment.segment}"
        return shown(self.path)

    @property
    def kind(self) -> str:
        if self.segment is not None:
            return "shared memory"
        return "tmpfs" if self.is_memory else "page cache"


@dataclass(slots=True)
class Pins:
    """All that was found. `dead` is how many cgroups are dead, None if that is unknown; `is_cut`
    if the time was up before all files were looked at.
    """

    ancestors: tuple[LiveAncestor, ...]
    dead: int | None
    found: list[PinningFile] = field(default_factory=list)
    files_seen: int = 0
    is_cut: bool = False

    @property
    def pages(self) -> int:
        return sum(ancestor.total for ancestor in self.ancestors)

    @property
    def explained(self) -> int:
        return sum(file.pages for file in self.found)


def dead_count(root: Path) -> int | None:
    """Memory cgroups that the kernel holds and that have no directory."""
    top = os.fsencode(_of_memory(root))
    if os.path.exists(top + b"/cgroup.controllers"):
        counts = {count.controller: count.dying for count in read_v2(top, [b"/"])}
        return counts.get("memory", counts.get("unified"))
    lines = (root / "proc/cgroups").read_text().splitlines()
    tracked = next((int(line.split()[2]) for line in lines if line.startswith("memory\t")), None)
    visible = sum(1 for _ in os.walk(top))
    return None if tracked is None else max(0, tracked - visible)


def ancestors(root: Path, pages: KernelPages, below: str = "/") -> tuple[LiveAncestor, ...]:
    """The most pages first; only those at and below a cgroup path."""
    hierarchy = _of_memory(root)
    top = os.path.normpath(f"{hierarchy}/{below}")
    if not os.path.isdir(top) or not f"{top}/".startswith(f"{hierarchy}/"):
        raise UsageError(f"there is no memory cgroup {clean(below)}", "see /sys/fs/cgroup/memory")
    counted = pages.count()
    found = []
    for folder, _, _ in os.walk(top):
        inode = os.stat(folder).st_ino
        own = counted.get(inode)
        if folder != hierarchy and own and _has_only_dead(Path(folder), sum(own.values())):
            found.append(LiveAncestor(inode, folder, own))
    return tuple(sorted(found, key=lambda each: -each.total))


def find_pins(
    root: Path,
    pages: KernelPages,
    folders: Sequence[Path] = (),
    progress: Progress = lambda _seen, _explained: None,
    below: str = "/",
    limit_s: float = LOOK_S,
) -> Pins:
    """Looks until nearly all pages are explained, nothing is left to look at, or time is up."""
    deadline = time.monotonic() + limit_s
    pins = Pins(ancestors(root, pages, below), dead_count(root))
    wanted = {each.inode for each in pins.ancestors}
    if not wanted:
        return pins
    table = PageTable()
    try:
        for segment in read_segments(root):
            pins.found += _of_segment(segment, table, pages, wanted)
        explained = pins.explained
        for candidate in files(read_mounts(root), folders):
            own = _of_file(candidate, table, pages, wanted)
            pins.found += own
            explained += sum(file.pages for file in own)
            pins.files_seen += 1
            if pins.files_seen % 1000 == 0:
                progress(pins.files_seen, explained)
            pins.is_cut = time.monotonic() > deadline
            if explained >= _FOUND * pins.pages or pins.is_cut:
                break
    finally:
        table.close()
    return pins


def _of_file(
    candidate: CandidateFile, table: PageTable, pages: KernelPages, wanted: Collection[int]
) -> list[PinningFile]:
    try:
        descriptor = os.open(candidate.path, _OPEN)
    except OSError:
        return []
    try:
        device = os.fstat(descriptor).st_dev
        windows = list(table.of_file(descriptor, candidate.size_bytes))
    except OSError:
        return []
    finally:
        os.close(descriptor)
    places = np.concatenate([window.places for window in windows] or [np.zeros(0, np.int64)])
    frames = np.concatenate([window.frames for window in windows] or [np.zeros(0, np.uint64)])
    if not len(places):
        return []
    owners, flags = pages.owners(frames), pages.flags(frames)
    found = []
    for owner in set(owners.tolist()) & set(wanted):
        own = owners == owner
        found.append(
            PinningFile(
                candidate.path,
                places[own],
                owner,
                candidate.is_memory,
                bool(is_dirty(flags[own]).any()),
                int(is_held(flags[own]).sum()),
                device,
            )
        )
    return found


def _of_segment(
    segment: SharedSegment, table: PageTable, pages: KernelPages, wanted: Collection[int]
) -> list[PinningFile]:
    window = (
        table.of_segment(segment.segment, segment.size_bytes) if segment.resident_bytes else None
    )
    if window is None or not len(window.places):
        return []
    owners = pages.owners(window.frames)
    return [
        PinningFile(b"", window.places[owners == owner], owner, True, False, 0, 0, segment)
        for owner in set(owners.tolist()) & set(wanted)
    ]


def _of_memory(root: Path) -> str:
    mounted = hierarchies.read(root)
    found = [each for each in mounted if "memory" in each.controllers] or [
        each for each in mounted if each.version == 2
    ]
    if not found:
        raise SourceUnavailable(
            "no hierarchy with the memory controller is mounted", "mount /sys/fs/cgroup"
        )
    return os.fsdecode(found[0].mount_point)


def _has_only_dead(folder: Path, pages: int) -> bool:
    try:
        if (folder / "cgroup.procs").read_text():
            return False
        lines = (folder / "memory.stat").read_text().splitlines()
    except OSError:
        return False
    if (folder / "cgroup.controllers").exists():
        return True  # on v2 a cgroup has either processes or children
    stat = dict(line.split() for line in lines if line.count(" ") == 1)
    own_bytes = int(stat.get("cache", 0)) + int(stat.get("rss", 0))
    return own_bytes <= _OWN_RATIO * pages * os.sysconf("SC_PAGE_SIZE")
