"""Hashes of the executables of running services: the same program from two places is the same
program, whatever it is called.

Slow on purpose: a hash costs CPU and disk, and no reader waits for it. `known` holds hashes by
identity: each file is read once.
"""

import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from necroscope.model.container_paths import parse_container, parse_unit
from necroscope.sources.facts.fact import Fact, fact, list_names, read_bytes

FILE_LIMIT: Final = 200
SIZE_LIMIT_BYTES: Final = 512 << 20
_PIECE_BYTES: Final = 1 << 20
# Of one core while hashing.
_SHARE: Final = 0.01
_CGROUP_BYTES: Final = 1 << 14


def collect(
    root: Path,
    known: dict[str, str],
    cpu_clock: Callable[[], float] = time.process_time,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[tuple[Fact, str]]:
    """A fact for each executable, and the identity under which its hash may be remembered."""
    for path, link in list(_service_executables(root).items())[:FILE_LIMIT]:
        try:
            descriptor = os.open(link, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_size > SIZE_LIMIT_BYTES:
                continue
            identity = f"{status.st_dev}:{status.st_ino}:{status.st_mtime_ns}:{status.st_size}"
            digest = known.get(identity) or _sha256(descriptor, cpu_clock, sleep)
        except OSError:
            continue
        finally:
            os.close(descriptor)
        yield fact("executable", path, digest), identity


def _service_executables(root: Path) -> dict[str, Path]:
    """Path of the program -> its link in /proc, which leads to the very file that runs, also after
    an upgrade.
    """
    found: dict[str, Path] = {}
    of_system: set[str] = set()
    for name in list_names(root / "proc", 1 << 20):
        if name.isdigit() and is_service(root / "proc" / name):
            link = root / "proc" / name / "exe"
            try:
                path = os.readlink(link)
            except OSError:
                continue
            if not path.startswith("/memfd:"):  # no file, and a name of its own at each start
                path = path.removesuffix(" (deleted)")
                found.setdefault(path, link)
                if b":/system.slice/" in (read_bytes(link.parent / "cgroup", _CGROUP_BYTES) or b""):
                    of_system.add(path)
    # Of too many those of the system's own services come first: a user who daemonises programs of
    # his own must not push them out.
    return dict(sorted(found.items(), key=lambda item: (item[0] not in of_system, item[0])))


def is_service(process: Path) -> bool:
    """In a service of systemd's, or a child of PID 1; containers bring their own programs."""
    paths = [
        line.rsplit(":", 1)[-1]
        for line in (read_bytes(process / "cgroup", _CGROUP_BYTES) or b"")
        .decode(errors="replace")
        .splitlines()
    ]
    if any(parse_container(path) is not None for path in paths):
        return False
    if any((parse_unit(path) or "").endswith(".service") for path in paths):
        return True
    after_name = (read_bytes(process / "stat", 4096) or b"").rpartition(b")")[2].split()
    return len(after_name) > 1 and after_name[1] == b"1"


def _sha256(descriptor: int, cpu_clock: Callable[[], float], sleep: Callable[[float], None]) -> str:
    digest = hashlib.sha256()
    started = cpu_clock()
    while piece := os.read(descriptor, _PIECE_BYTES):
        digest.update(piece)
        used, started = cpu_clock() - started, cpu_clock()
        sleep(used / _SHARE)
    return digest.hexdigest()
