"""The log files of Ray's latest session: below the node's own /tmp/ray, and below that of each
container a raylet or GCS runs in.

Any user may write there. So every path is resolved inside the root it belongs to, only regular
files are opened, none blocks, and their number and the bytes read of them at a time are bounded.
"""

import fnmatch
import os
import re
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from necroscope.sources.ray import event_files, log_lines
from necroscope.sources.ray.ray_event import RayEvent
from necroscope.symbols.target_files import open_in_root, open_root, resolve

# One log file that is followed: by descriptor, from where we were, a bounded piece at a time,
# only lines that tell something.

PIECE_BYTES: Final = 256 * 1024
# A file that is this far ahead of us is not caught up with: the middle is left out, and that is
# said.
BEHIND_LIMIT_BYTES: Final = 4 << 20
_LINE_LIMIT_BYTES: Final = 64 * 1024


class FollowedFile:
    """Owns its descriptor, so that a file that is moved away can be read to its end. A user who
    writes it may cut it.

    `offset` is where the next piece begins; `is_at_end` tells whether the last one was all there
    was.
    """

    def __init__(self, descriptor: int, telling: re.Pattern[bytes], offset: int) -> None:
        self.offset = offset
        self.is_at_end = False
        self.skipped_bytes = 0
        self._descriptor = descriptor
        self._telling = telling
        self._pending = b""

    def read_lines(self, limit_bytes: int = PIECE_BYTES) -> list[bytes]:
        """The telling ones among the whole lines that came since; none if it cannot be read."""
        try:
            data = self._read(limit_bytes)
        except OSError:
            self.is_at_end = True
            return []
        end = data.rfind(b"\n") + 1
        self._pending = data[end:][-_LINE_LIMIT_BYTES:]
        return _telling_lines(data[:end], self._telling)

    def _read(self, limit_bytes: int) -> bytes:
        """What is left of the last piece, and the next one."""
        size = os.fstat(self._descriptor).st_size
        if size < self.offset:
            self.offset, self._pending = 0, b""
        if size - self.offset > BEHIND_LIMIT_BYTES:
            self.skipped_bytes += size - limit_bytes - self.offset
            self.offset, self._pending = size - limit_bytes, b""
        piece = os.pread(self._descriptor, limit_bytes, self.offset) if size > self.offset else b""
        self.offset += len(piece)
        self.is_at_end = len(piece) < limit_bytes
        return self._pending + piece

    def take_skipped_bytes(self) -> int:
        skipped, self.skipped_bytes = self.skipped_bytes, 0
        return skipped

    def close(self) -> None:
        os.close(self._descriptor)


def _telling_lines(data: bytes, telling: re.Pattern[bytes]) -> list[bytes]:
    lines = []
    position = 0
    while (match := telling.search(data, position)) is not None:
        start = data.rfind(b"\n", 0, match.start()) + 1
        position = data.find(b"\n", match.end()) + 1 or len(data)
        lines.append(data[start : min(position - 1, start + _LINE_LIMIT_BYTES)])
    return lines


FILE_LIMIT: Final = 96
PLACE_LIMIT: Final = 8
PLACES_OF_USER: Final = 4
_NAMES_LIMIT: Final = 20_000
# A search over this takes a tenth of a second: on top of a piece of each file, this much is read of
# those that have more.
_ROUND_BYTES: Final = 8 << 20
_LOGS: Final = b"session_latest/logs"
_PROGRAMS: Final = (b"raylet\n", b"gcs_server\n")


class _Kind(NamedTuple):
    """Files of a sub-folder by their names, in the order of their worth: the first are followed
    when there are too many.
    """

    folder: bytes
    names: tuple[str, ...]
    telling: re.Pattern[bytes]
    parse: Callable[[bytes, int], RayEvent | None]


_KINDS: Final = (
    _Kind(b"", ("gcs_server.out",), log_lines.TELLING, log_lines.parse),
    _Kind(
        b"events",
        ("event_GCS.log", "event_RAYLET.log", "event_JOBS.log"),
        event_files.TELLING,
        event_files.parse,
    ),
    _Kind(
        b"export_events",
        ("event_EXPORT_NODE.log", "event_EXPORT_ACTOR.log", "event_EXPORT_SUBMISSION_JOB.log"),
        event_files.TELLING,
        event_files.parse,
    ),
    _Kind(
        b"", ("raylet*.out", "job-driver-*.log", "worker-*.err"), log_lines.TELLING, log_lines.parse
    ),
)


class _ListedFile(NamedTuple):
    name: bytes
    identity: tuple[int, int]
    size_bytes: int
    written_ns: int


@dataclass(slots=True)
class _FollowedFile:
    file: FollowedFile
    kind: _Kind


class SessionLogs:
    """Files there are at the first look are followed from their end; what comes later is read from
    its start.

    A node of many cores has more files of workers than are held open. So how far each was read is
    kept by its identity: one that is opened again is read on from there, and not reported a second
    time.
    """

    def __init__(
        self, root: Path, directory: str, root_of: Callable[[int], int] | None = None
    ) -> None:
        """`root_of` opens the root directory of a process, which takes CAP_SYS_PTRACE."""
        self._root = root
        self._root_of = root_of
        self._directory = os.fsencode(directory)
        self._files: dict[tuple[int, int], _FollowedFile] = {}
        self._offsets: dict[tuple[int, int], int] = {}
        self._is_first = True
        self._roots: list[Path] = []

    def find_roots(self) -> None:
        """The node's root, and those of Ray's processes that see another directory there:
        containers, or a /tmp of their own.
        """
        roots = [self._root]
        known = {self._identity(self._root), None}
        of_user: Counter[int] = Counter()
        for process, user in _ray_processes(self._root):
            identity = self._identity(process / "root")
            # Any process may call itself a raylet: one user's do not take all places.
            if identity in known or len(roots) == PLACE_LIMIT or of_user[user] == PLACES_OF_USER:
                continue
            known.add(identity)
            of_user[user] += 1
            roots.append(process / "root")
        self._roots = roots

    def read(self, realtime_ns: int) -> tuple[list[RayEvent], int]:
        """What the lines that came since tell, and how many bytes were left out."""
        found: dict[tuple[int, int], _FollowedFile] = {}
        for root in self._roots:
            self._follow(root, found)
        every, gone = self._files | found, self._files.keys() - found.keys()
        # Kept before a line is read: whatever is in it, no descriptor is lost, and the next round
        # reads on behind it.
        self._files, self._is_first = found, False
        try:
            events = list(_events(every.values(), realtime_ns))
        finally:
            self._remember(every)
            for identity in gone:
                every[identity].file.close()
        return events, sum(followed.file.take_skipped_bytes() for followed in every.values())

    def close(self) -> None:
        for followed in self._files.values():
            followed.file.close()
        self._files.clear()

    def _identity(self, root: Path) -> tuple[int, int] | None:
        """Of Ray's directory as it is seen from a root."""
        root_descriptor = self._open_root(root)
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

    def _open_root(self, root: Path) -> int | None:
        if self._root_of is None or root == self._root:
            return open_root(root)
        try:
            return self._root_of(int(root.parent.name))
        except OSError:
            return None

    def _follow(self, root: Path, found: dict[tuple[int, int], _FollowedFile]) -> None:
        root_descriptor = self._open_root(root)
        if root_descriptor is None:
            return
        try:
            if not _is_there(
                root_descriptor, self._directory + b"/" + _LOGS
            ):  # most nodes run no Ray
                return
            for kind in _KINDS:
                folder = b"/".join(part for part in (self._directory, _LOGS, kind.folder) if part)
                for listed in self._choose(_matching(root_descriptor, folder, kind.names)):
                    if listed.identity in self._files:
                        found[listed.identity] = self._files[listed.identity]
                    elif listed.identity not in found and len(found) < FILE_LIMIT:
                        descriptor = open_in_root(root_descriptor, folder + b"/" + listed.name)
                        if (
                            descriptor is None
                        ):  # one that we may not read takes no other file's place until it grows
                            self._offsets[listed.identity] = listed.size_bytes
                            continue
                        file = FollowedFile(
                            descriptor, kind.telling, self._offsets[listed.identity]
                        )
                        found[listed.identity] = _FollowedFile(file, kind)
        finally:
            os.close(root_descriptor)

    def _remember(self, every: dict[tuple[int, int], _FollowedFile]) -> None:
        self._offsets |= {identity: followed.file.offset for identity, followed in every.items()}
        for identity in list(self._offsets)[:-_NAMES_LIMIT]:
            del self._offsets[identity]

    def _choose(self, matching: list[_ListedFile]) -> list[_ListedFile]:
        """Those with something unread first, then the newest. What was not seen for the longest
        time is forgotten first.
        """
        for listed in matching:
            unknown = listed.size_bytes if self._is_first else 0
            self._offsets[listed.identity] = self._offsets.pop(listed.identity, unknown)
        return sorted(
            matching,
            key=lambda listed: (
                listed.size_bytes != self._offsets[listed.identity],
                listed.written_ns,
            ),
            reverse=True,
        )[:FILE_LIMIT]


def _events(every: Iterable[_FollowedFile], realtime_ns: int) -> Iterator[RayEvent]:
    """A piece of each file in turn, so that a fast one keeps no other from being told."""
    unread, left_bytes = list(every), _ROUND_BYTES
    while unread and left_bytes > 0:
        for followed in unread:
            for line in followed.file.read_lines():
                event = followed.kind.parse(line, realtime_ns)
                if event is not None:
                    yield event
        unread = [followed for followed in unread if not followed.file.is_at_end]
        left_bytes -= len(unread) * PIECE_BYTES


def _is_there(root_descriptor: int, folder: bytes) -> bool:
    try:
        os.close(resolve(root_descriptor, folder))
    except OSError:
        return False
    return True


def _matching(root_descriptor: int, folder: bytes, names: tuple[str, ...]) -> list[_ListedFile]:
    """Regular files of a folder."""
    try:
        place = resolve(root_descriptor, folder)
    except OSError:
        return []
    try:
        listed = os.listdir(f"/proc/self/fd/{place}")[:_NAMES_LIMIT]
        found = (
            _status(place, name)
            for name in listed
            if any(fnmatch.fnmatchcase(name, wanted) for wanted in names)
        )
        return [one for one in found if one is not None]
    except OSError:
        return []
    finally:
        os.close(place)


def _status(place: int, name: str) -> _ListedFile | None:
    try:
        status = os.stat(name, dir_fd=place, follow_symlinks=False)
    except OSError:  # moved away since it was listed
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    return _ListedFile(
        os.fsencode(name), (status.st_dev, status.st_ino), status.st_size, status.st_mtime_ns
    )


def _ray_processes(root: Path) -> Iterator[tuple[Path, int]]:
    try:
        names = os.listdir(root / "proc")
    except OSError:
        return
    for name in names:
        if name.isdigit():
            process = root / "proc" / name
            try:
                if (process / "comm").read_bytes() in _PROGRAMS:
                    yield process, process.stat().st_uid
            except OSError:
                continue
