"""Perf maps of processes that make code: found in the target's mount namespace by the pid it has
there, followed as they grow.
"""

import os
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from necroscope.symbols.perf_map import MAP_LIMIT_BYTES, PerfMap
from necroscope.symbols.target_files import open_in_root, open_root, read_bounded

MAPS_LIMIT_BYTES: Final = 32 << 20
# Of a map, for one question: a third of a second. The next question goes on from there.
_PIECE_BYTES: Final = 1 << 20
_STATUS_LIMIT_BYTES: Final = 1 << 16


class _FollowedMap:
    """A perf map and how far its file was read; another inode or a shorter file is another map."""

    def __init__(self, device: int, inode: int) -> None:
        self.file = (device, inode)
        self.position = 0
        self.map = PerfMap()

    def follow(self, descriptor: int, size_bytes: int) -> None:
        skipped = self.position == 0 and size_bytes > MAP_LIMIT_BYTES
        self.position = size_bytes - MAP_LIMIT_BYTES if skipped else self.position
        text = os.pread(descriptor, min(size_bytes - self.position, _PIECE_BYTES), self.position)
        if skipped:
            cut = text.find(b"\n") + 1
            text, self.position = text[cut:], self.position + cut
        self.position += self.map.append(text)


class JitMaps:
    def __init__(self, root: Path, limit_bytes: int = MAPS_LIMIT_BYTES) -> None:
        self._root = root
        self._limit_bytes = limit_bytes
        self._maps: OrderedDict[int, _FollowedMap] = OrderedDict()

    def lookup(self, pid: int, addresses: Sequence[int]) -> list[str | None]:
        followed = self._follow(pid)
        return followed.map.lookup(addresses) if followed is not None else [None] * len(addresses)

    def _follow(self, pid: int) -> _FollowedMap | None:
        """The map as it is now. A dead process keeps the one that was read while it lived."""
        status = read_bounded(self._root / f"proc/{pid}/status", _STATUS_LIMIT_BYTES)
        descriptor = (
            self._open_of_the_living(pid, status)
            if status is not None
            else self._open_after_exit(pid)
        )
        if descriptor is None:
            if status is not None:
                self._maps.pop(pid, None)
            return self._maps.get(pid)
        try:
            return self._update(pid, descriptor)
        except OSError:
            return None
        finally:
            os.close(descriptor)

    def _update(self, pid: int, descriptor: int) -> _FollowedMap:
        status = os.fstat(descriptor)
        followed = self._maps.get(pid)
        # This much was appended, or it grew by so much that starting again from its end is right.
        is_too_big = followed is not None and followed.map.size_bytes > 2 * MAP_LIMIT_BYTES
        if (
            followed is None
            or followed.file != (status.st_dev, status.st_ino)
            or status.st_size < followed.position
            or is_too_big
        ):
            followed = self._maps[pid] = _FollowedMap(status.st_dev, status.st_ino)
        if status.st_size > followed.position:
            followed.follow(descriptor, status.st_size)
        self._maps.move_to_end(pid)
        self._forget_oldest()
        return followed

    def _forget_oldest(self) -> None:
        total_bytes = sum(followed.map.size_bytes for followed in self._maps.values())
        while total_bytes > self._limit_bytes and len(self._maps) > 1:
            _, followed = self._maps.popitem(last=False)
            total_bytes -= followed.map.size_bytes

    def _open_of_the_living(self, pid: int, status: bytes) -> int | None:
        own_pid, owner = parse_status(status)
        descriptor = _open_map(self._root, pid, own_pid if own_pid is not None else pid)
        # Any user may write to /tmp: a map that neither the process's user nor root wrote is not
        # its map.
        if descriptor is not None and os.fstat(descriptor).st_uid not in (owner, 0):
            os.close(descriptor)
            return None
        return descriptor

    def _open_after_exit(self, pid: int) -> int | None:
        """Whose process it was is not known any more: only root's word is taken."""
        descriptor = _open_map(self._root, None, pid)
        if descriptor is not None and os.fstat(descriptor).st_uid != 0:
            os.close(descriptor)
            return None
        return descriptor


def _open_map(root: Path, pid: int | None, own_pid: int) -> int | None:
    target_root = open_root(root, pid)
    if target_root is None:
        return None
    try:
        return open_in_root(target_root, f"/tmp/perf-{own_pid}.map".encode())
    finally:
        os.close(target_root)


def parse_status(text: bytes) -> tuple[int | None, int | None]:
    """From /proc/PID/status: the pid in the innermost pid namespace, and the effective user."""
    fields = {
        name: value.split()
        for name, _, value in (line.partition(b":") for line in text.split(b"\n"))
    }
    own_pids, users = fields.get(b"NSpid", []), fields.get(b"Uid", [])
    own_pid = int(own_pids[-1]) if own_pids and own_pids[-1].isdigit() else None
    owner = int(users[1]) if len(users) > 1 and users[1].isdigit() else None
    return own_pid, owner
