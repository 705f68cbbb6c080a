"""Drivers of Ray: a program that calls `ray.init` writes where it likes, but its core opens a log
in the directory of the session, whose name has the job and the process
(src/ray/core_worker/core_worker_process.cc):

    python-core-driver-01000000ffffffffffffffffffffffffffffffffffffffffffffffff_4711.log
"""

import os
import re
from contextlib import suppress
from itertools import islice
from typing import Final, NamedTuple

from necroscope.sources.jobs.membership import Membership
from necroscope.symbols.target_files import resolve

_NAME: Final = re.compile(r"python-core-driver-(?P<job>[0-9a-f]{8})f{16,64}_(?P<pid>\d{1,10})\.log")
_LOGS: Final = re.compile(r"(?P<logs>.*/session_(?P<session>[0-9_-]{10,40})/logs)/raylet\b")
# A session that runs for weeks has a log per worker; drivers are few.
_MOST_NAMES: Final = 20_000
_MOST_DRIVERS: Final = 64


class LogDirectory(NamedTuple):
    """The directory of logs that a raylet writes to, in its own root."""

    path: str
    session: str


class RayDriver(NamedTuple):
    """A process id is used again: one that was started after `written_ns` is another process."""

    pid: int
    member: Membership
    written_ns: int


def session_logs(log: str | None) -> LogDirectory | None:
    """`log` is the file behind the raylet's standard error."""
    match = _LOGS.match(log or "")
    return LogDirectory(match["logs"], match["session"]) if match else None


def list_drivers(root_descriptor: int, logs: LogDirectory) -> list[RayDriver]:
    """With pids as the raylet's own system counts: the node's, unless it is in a container."""
    found: list[RayDriver] = []
    with suppress(OSError, ValueError):
        place = resolve(root_descriptor, os.fsencode(logs.path))
        try:
            with os.scandir(f"/proc/self/fd/{place}") as entries:
                for entry in islice(entries, _MOST_NAMES):
                    match = _NAME.fullmatch(entry.name)
                    if match is not None:
                        member = Membership(f"ray/{logs.session}/{match['job']}", "ray", "driver")
                        written_ns = entry.stat(follow_symlinks=False).st_mtime_ns
                        found.append(RayDriver(int(match["pid"]), member, written_ns))
        finally:
            os.close(place)
    return sorted(found, key=lambda one: -one.written_ns)[:_MOST_DRIVERS]
