"""The log files of Ray's latest session: below the node's own /tmp/ray, and below that of each container a raylet or GCS runs in.

Anybody may write there. So every path is resolved inside the root it belongs to, only regular files are opened, none blocks, and
their number and the bytes read of them at a time are bounded.
"""

import fnmatch
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from necroscope.sources.ray import event_files, log_lines
from necroscope.sources.ray.followed_file import PIECE_BYTES, FollowedFile
from necroscope.sources.ray.ray_event import RayEvent
from necroscope.symbols.target_files import open_in_root, open_root, resolve

FILE_LIMIT: Final = 96
PLACE_LIMIT: Final = 8
_NAMES_LIMIT: Final = 20_000
_ROUND_BYTES: Final = 2 << 20
_LOGS: Final = b"session_latest/logs"
_PROGRAMS: Final = (b"raylet\n", b"gcs_server\n")


class _Kind(NamedTuple):
    """Files of a sub-folder by their names, in the order of their worth: the first are followed when there are too many."""

    folder: bytes
    names: tuple[str, ...]
    telling: re.Pattern[bytes]
    parse: Callable[[bytes, int], RayEvent | None]


_KINDS: Final = (
    _Kind(b"", ("gcs_server.out",), log_lines.TELLING, log_lines.parse),
    _Kind(b"events", ("event_GCS.log", "event_RAYLET.log", "event_JOBS.log"), event_files.TELLING, event_files.parse),
    _Kind(
        b"export_events",
        ("event_EXPORT_NODE.log", "event_EXPORT_ACTOR.log", "event_EXPORT_SUBMISSION_JOB.log"),
        event_files.TELLING,
        event_files.parse,
    ),
    _Kind(b"", ("raylet*.out", "job-driver-*.log", "worker-*.err"), log_lines.TELLING, log_lines.parse),
)


@dataclass(slots=True)
class _Followed:
    file: FollowedFile
    kind: _Kind


class SessionLogs:
    """Files there are at the first look are followed from their end; what comes later is read from its start."""

    def __init__(self, root: Path, directory: str) -> None:
        self._root = root
        self._directory = os.fsencode(directory)
        self._files: dict[tuple[int, int], _Followed] = {}
        self._is_first = True
        self._roots: list[Path] = []

    def find_roots(self) -> None:
        """The node's root, and those of Ray's processes that see another directory there: containers, or a /tmp of their own."""
        roots = [self._root]
        known = {self._identity(self._root), None}
        for process in _ray_processes(self._root):
            identity = self._identity(process / "root")
            if identity not in known and len(roots) < PLACE_LIMIT:
                known.add(identity)
                roots.append(process / "root")
        self._roots = roots

    def read(self, realtime_ns: int) -> tuple[list[RayEvent], int]:
        """What the lines that came since tell, and how many bytes were left out."""
        found: dict[tuple[int, int], _Followed] = {}
        for root in self._roots:
            self._follow(root, found)
        every, gone = self._files | found, self._files.keys() - found.keys()
        # Kept before a line is read: whatever is in it, no descriptor is lost, and the next round reads on behind it.
        self._files, self._is_first = found, False
        try:
            events = [event for followed in every.values() for event in _events(followed, realtime_ns)]
        finally:
            for identity in gone:
                every[identity].file.close()
        return events, sum(followed.file.take_skipped_bytes() for followed in found.values())

    def close(self) -> None:
        for followed in self._files.values():
            followed.file.close()
        self._files.clear()

    def _identity(self, root: Path) -> tuple[int, int] | None:
        """Of Ray's directory as it is seen from a root."""
        root_descriptor = open_root(root)
        if root_descriptor is None:
            return None
        try:
            place = resolve(root_descriptor, self._directory)
        except OSError:
            return None
        finally:
            os.close(root_descriptor)
        status = os.fstat(place)
        os.close(place)
        return status.st_dev, status.st_ino

    def _follow(self, root: Path, found: dict[tuple[int, int], _Followed]) -> None:
        root_descriptor = open_root(root)
        if root_descriptor is None:
            return
        try:
            for kind in _KINDS:
                folder = b"/".join(part for part in (self._directory, _LOGS, kind.folder) if part)
                for name, identity in _matching(root_descriptor, folder, kind.names):
                    if identity in self._files:
                        found[identity] = self._files[identity]
                    elif identity not in found and len(found) < FILE_LIMIT:
                        descriptor = open_in_root(root_descriptor, folder + b"/" + name)
                        if descriptor is not None:
                            found[identity] = _Followed(FollowedFile(descriptor, kind.telling, from_end=self._is_first), kind)
        finally:
            os.close(root_descriptor)


def _events(followed: _Followed, realtime_ns: int) -> Iterator[RayEvent]:
    left_bytes = _ROUND_BYTES
    while left_bytes > 0 and (lines := followed.file.read_lines()):
        left_bytes -= PIECE_BYTES
        for line in lines:
            event = followed.kind.parse(line, realtime_ns)
            if event is not None:
                yield event


def _matching(root_descriptor: int, folder: bytes, names: tuple[str, ...]) -> list[tuple[bytes, tuple[int, int]]]:
    """Files of a folder with their identity, the newest first."""
    try:
        place = resolve(root_descriptor, folder)
    except OSError:
        return []
    try:
        listed = os.listdir(f"/proc/self/fd/{place}")[:_NAMES_LIMIT]
        found = []
        for name in listed:
            if any(fnmatch.fnmatchcase(name, wanted) for wanted in names):
                status = os.stat(name, dir_fd=place, follow_symlinks=False)
                found.append((status.st_mtime_ns, os.fsencode(name), (status.st_dev, status.st_ino)))
        return [(name, identity) for _, name, identity in sorted(found, reverse=True)[:FILE_LIMIT]]
    except OSError:
        return []
    finally:
        os.close(place)


def _ray_processes(root: Path) -> Iterator[Path]:
    try:
        names = os.listdir(root / "proc")
    except OSError:
        return
    for name in names:
        if name.isdigit():
            process = root / "proc" / name
            try:
                if (process / "comm").read_bytes() in _PROGRAMS:
                    yield process
            except OSError:
                continue
