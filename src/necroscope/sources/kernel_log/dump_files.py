"""Files in which a kernel that ended left its log: pstore, systemd's archive of it, crash dumps.

Any user may write to /var/crash on some systems: only files of root in directories of root count.
"""

import contextlib
import os
import re
import stat
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

MOST_BYTES: Final = 256 * 1024
_MOST_FILES: Final = 64
_MOST_LOOKED_AT: Final = 50_000
# Each with the depth at which its files lie.
_PLACES: Final = (
    ("pstore", "sys/fs/pstore", ("dmesg-*",)),
    ("pstore", "var/lib/systemd/pstore", ("dmesg*", "*/dmesg*", "*/*/dmesg*")),
    ("the crash dump", "var/crash", ("*/vmcore-dmesg.txt", "*/dmesg.*")),
)
# A dump that did not fit into one record of the firmware: part 1 is the end of the log.
_PART: Final = re.compile(rb"(\w+#\d+) Part(\d+)\r?\n")


class Dump(NamedTuple):
    """`place` is what a reader calls it."""

    place: str
    ended_ns: int
    text: bytes


def newest_dump(root: Path, since_ns: int) -> Dump | None:
    """The newest that was written since then; parts of one dump are put together."""
    found = [dump for dump in _dumps(root) if dump.ended_ns >= since_ns]
    newest = max(found, key=lambda dump: dump.ended_ns, default=None)
    head = _PART.match(newest.text) if newest is not None else None
    if newest is None or head is None:
        return newest
    parts: dict[int, bytes] = {}
    for dump in found:
        match = _PART.match(dump.text) if dump.place == newest.place else None
        if match is not None and match[1] == head[1]:
            parts[int(match[2])] = dump.text[match.end() :]
    joined = b"\n".join(parts[number] for number in sorted(parts, reverse=True))
    return Dump(newest.place, newest.ended_ns, joined[-MOST_BYTES:])


def _dumps(root: Path) -> Iterator[Dump]:
    for place, directory, patterns in _PLACES:
        for path in _files(root / directory, patterns):
            with contextlib.suppress(OSError):
                dump = _read(place, path)
                if dump is not None:
                    yield dump


def _files(directory: Path, patterns: tuple[str, ...]) -> list[Path]:
    """At most this many, those that were last by name: the names hold times or numbers. Others'
    do not take their places.
    """
    with contextlib.suppress(OSError):
        found = islice((path for one in patterns for path in directory.glob(one)), _MOST_LOOKED_AT)
        own = [path for path in found if not _is_of_others(path.parent)]
        return sorted(own)[-_MOST_FILES:]
    return []


def _read(place: str, path: Path) -> Dump | None:
    """The end of a regular file of root; nothing that would wait or lead elsewhere is opened."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_uid:
            return None
        # pstore gives no size: what comes is read, and bounded.
        text = os.pread(descriptor, MOST_BYTES, max(0, found.st_size - MOST_BYTES))
        return Dump(place, found.st_mtime_ns, text) if text else None
    finally:
        os.close(descriptor)


def _is_of_others(directory: Path) -> bool:
    try:
        found = directory.lstat()
    except OSError:
        return True
    return bool(found.st_uid or found.st_mode & stat.S_IWOTH or not stat.S_ISDIR(found.st_mode))
