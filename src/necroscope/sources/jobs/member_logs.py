"""Logs of members: opened below the root directory of the process that writes them, read at its end
for its last words; and the logs of a Ray session, whose names tell its drivers.

Users name these files, and opening or reading one may hang.
"""

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence

from necroscope.sources.jobs.followed_member import FollowedMember
from necroscope.sources.jobs.last_words import TAIL_BYTES, LastWords, last_words
from necroscope.sources.jobs.ray_drivers import RayDriver, list_drivers, session_logs
from necroscope.symbols.target_files import open_in_root

# A descriptor of its log, what that said at the end, or the drivers of a raylet's session.
Found = int | LastWords | None | list[RayDriver]
RootOf = Callable[[int], int | None]


def read_logs(
    root_of: RootOf,
    new: Sequence[FollowedMember],
    ended: Sequence[FollowedMember],
    listed: Sequence[FollowedMember],
) -> Iterator[tuple[FollowedMember, Found]]:
    """Of new members the logs are opened, of those that have ended read, of raylets listed. It may
    hang: it is called in a thread.
    """
    for member in new:
        descriptor = _open_log(root_of, member)
        if descriptor is not None:
            yield member, descriptor
    for member in ended:
        tail = b""
        with contextlib.suppress(OSError):
            size = os.fstat(member.log).st_size
            tail = os.pread(member.log, TAIL_BYTES, max(0, size - TAIL_BYTES))
        yield member, last_words(tail)
    for member in listed:
        yield member, _drivers_of(root_of, member)


def _drivers_of(root_of: RootOf, raylet: FollowedMember) -> Found:
    logs, root = session_logs(raylet.log_path), _root(root_of, raylet)
    if root is None:
        return []
    try:
        return list_drivers(root, logs) if logs is not None else []
    finally:
        os.close(root)


def _open_log(root_of: RootOf, member: FollowedMember) -> int | None:
    path, root = member.log_path, _root(root_of, member)
    if root is None:
        return None
    try:
        return open_in_root(root, os.fsencode(path)) if path is not None else None
    finally:
        os.close(root)


def _root(root_of: RootOf, member: FollowedMember) -> int | None:
    try:
        return root_of(member.pid)
    except OSError:
        return None
