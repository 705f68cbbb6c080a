"""Where the pages of dead cgroups may be: the files of local file systems and of tmpfs, and System
V shared memory.

Network and FUSE file systems are left out: they can hang, and their cache is not ours to judge.
"""

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from necroscope.model.names import LINE_LIMIT, clean
from necroscope.sources.facts.fact import read_bytes

_MEMORY_TYPES: Final = frozenset({"tmpfs", "ramfs"})
_DISK_TYPES: Final = frozenset({"ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs"})
# What containers and units write is there: of a file system, these folders come first.
_LIKELY: Final = ("var/log", "var/lib", "var", "tmp", "run", "srv", "home", "root", "opt", "data")
_LISTING_BYTES: Final = 4 << 20


@dataclass(frozen=True, slots=True)
class LocalMount:
    """`device` is major:minor, which two mounts of one file system share."""

    path: str
    kind: str
    device: str

    @property
    def is_memory(self) -> bool:
        return self.kind in _MEMORY_TYPES


@dataclass(frozen=True, slots=True)
class SharedSegment:
    """A line of /proc/sysvipc/shm."""

    segment: int
    size_bytes: int
    attached: int
    resident_bytes: int


@dataclass(frozen=True, slots=True)
class CandidateFile:
    path: bytes
    size_bytes: int
    is_memory: bool


def parse_mounts(text: str) -> list[LocalMount]:
    """From mountinfo: each file system once, by the mount that shows the most of it."""
    found: dict[str, tuple[str, LocalMount]] = {}
    for line in text.splitlines():
        fields, _, rest = line.partition(" - ")
        words, kinds = fields.split(), rest.split()
        if len(words) < 5 or not kinds or kinds[0] not in _MEMORY_TYPES | _DISK_TYPES:
            continue
        shown, path = words[3], words[4].replace("\\040", " ").replace("\\134", "\\")
        mount = LocalMount(path, kinds[0], words[2])
        known = found.get(mount.device)
        if known is None or len(shown) < len(known[0]):
            found[mount.device] = (shown, mount)
    return sorted((mount for _, mount in found.values()), key=lambda each: not each.is_memory)


def read_mounts(root: Path) -> list[LocalMount]:
    data = read_bytes(root / "proc/self/mountinfo", _LISTING_BYTES) or b""
    return parse_mounts(data.decode("utf-8", "surrogateescape"))


def parse_segments(text: str) -> list[SharedSegment]:
    found = []
    for line in text.splitlines()[1:]:
        words = line.split()
        if len(words) >= 15 and all(word.lstrip("-").isdecimal() for word in words):
            numbers = [int(word) for word in words]
            found.append(SharedSegment(numbers[1], numbers[3], numbers[6], numbers[14]))
    return found


def read_segments(root: Path) -> list[SharedSegment]:
    data = read_bytes(root / "proc/sysvipc/shm", _LISTING_BYTES) or b""
    return parse_segments(data.decode("ascii", "replace"))


def files(mounts: Sequence[LocalMount], folders: Sequence[Path]) -> Iterator[CandidateFile]:
    """Regular files, those in memory first; below `folders` only, if any are given."""
    if folders:
        memory_devices = {_device(mount.path) for mount in mounts if mount.is_memory}
        for folder in folders:
            yield from _walk(os.fsencode(folder), memory_devices)
        return
    for mount in mounts:
        devices = {_device(mount.path)} if mount.is_memory else set()
        seen: set[bytes] = set()
        for place in (*_LIKELY, ""):
            top = os.fsencode(os.path.join(mount.path, place))
            yield from _walk(top, devices, seen)
            seen.add(top)


def _device(path: str) -> int | None:
    try:
        return os.stat(path).st_dev
    except OSError:
        return None


def _walk(
    top: bytes, memory_devices: set[int | None], without: set[bytes] | None = None
) -> Iterator[CandidateFile]:
    """What lies on the file system of `top`, without following a link or crossing a mount."""
    try:
        device = os.lstat(top).st_dev
    except OSError:
        return
    waiting = [top]
    while waiting:
        folder = waiting.pop()
        if without and folder in without:
            continue
        try:
            entries = os.scandir(folder)
        except OSError:
            continue
        with entries:
            for entry in entries:
                try:
                    status = entry.stat(follow_symlinks=False)
                except OSError:
                    continue
                if status.st_dev != device:
                    continue
                if stat.S_ISDIR(status.st_mode):
                    waiting.append(entry.path)
                elif stat.S_ISREG(status.st_mode) and status.st_size:
                    is_memory = device in memory_devices
                    yield CandidateFile(entry.path, status.st_size, is_memory)


def shown(path: bytes) -> str:
    return clean(path, LINE_LIMIT)
