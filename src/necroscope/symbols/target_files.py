"""Opening files of other processes, which may lie, hang or lead outside: the file a process maps,
or one in its root directory.

openat2(2) with RESOLVE_IN_ROOT keeps every symlink, absolute ones and `..` too, inside the
process's root. The name is first opened with O_PATH, which neither blocks on a FIFO nor wakes a
device, and read only if it is a regular file.
"""

import ctypes
import errno
import os
import stat
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from necroscope.perf_abi.syscalls import syscall
from necroscope.symbols import process_maps

# Files are read by pread and never mapped or read whole: a sanity limit only.
FILE_LIMIT_BYTES: Final = 16 << 30
MAPS_LIMIT_BYTES: Final = 16 << 20
DELETED: Final = " (deleted)"

_RESOLVE_NO_MAGICLINKS: Final = 0x02
_RESOLVE_IN_ROOT: Final = 0x10
_ATTEMPTS: Final = 3
_SYMLINKS_LIMIT: Final = 40
_PATH_LIMIT_BYTES: Final = 4096
_READ_FLAGS: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def open_root(root: Path, pid: int | None = None) -> int | None:
    """A descriptor of the root directory of a process, or of the node (pid None)."""
    path = root if pid is None else root / f"proc/{pid}/root"
    try:
        return os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None


def open_in_root(root_descriptor: int, path: bytes) -> int | None:
    """A readable descriptor of a regular file under a root, or None."""
    if not path.startswith(b"/") or b"\0" in path or len(path) >= _PATH_LIMIT_BYTES:
        return None
    try:
        place = resolve(root_descriptor, path)
    except OSError:
        return None
    try:
        return _reopen(place)
    finally:
        os.close(place)


def open_mapped(root: Path, pid: int, path: str, device: tuple[int, int], inode: int) -> int | None:
    """The file that a process has mapped under this path.

    While it lives: through its root, unless that path now holds another inode of the same device
    (an upgrade replaced the file), then through its mappings. Another device says nothing:
    overlayfs with layers on several file systems shows one in mappings and another in stat, and
    before commit 3efdc78fdc21 overlayfs always did (checkpoint-restore/criu#2312). After its death:
    in the node's root, only if device and inode are the mapping's.
    """
    target_root = open_root(root, pid)
    if target_root is None:
        return _open_after_exit(root, path, device, inode)
    try:
        descriptor = (
            None if path.endswith(DELETED) else open_in_root(target_root, os.fsencode(path))
        )
    finally:
        os.close(target_root)
    if descriptor is not None and not _was_replaced(descriptor, device, inode):
        return descriptor
    if descriptor is not None:
        os.close(descriptor)
    return _open_by_mapping(root, pid, device, inode) if inode else None


def read_bounded(path: Path, limit_bytes: int) -> bytes | None:
    """A file of /proc, at most this much of it; None if it cannot be read."""
    try:
        with path.open("rb", buffering=0) as file:
            chunks: list[bytes] = []
            while limit_bytes > 0 and (chunk := file.read(min(limit_bytes, 1 << 16))):
                chunks.append(chunk)
                limit_bytes -= len(chunk)
            return b"".join(chunks)
    except OSError:
        return None


def resolve(root_descriptor: int, path: bytes) -> int:
    """An O_PATH descriptor of what a path means inside a root."""
    how = struct.pack(
        "<QQQ", os.O_PATH | os.O_CLOEXEC, 0, _RESOLVE_IN_ROOT | _RESOLVE_NO_MAGICLINKS
    )
    for attempt in range(_ATTEMPTS):
        try:
            return _openat2(root_descriptor, path, how)
        except OSError as error:
            if (
                error.errno == errno.ENOSYS
            ):  # before Linux 5.6, or a seccomp filter that does not know it
                return resolve_by_steps(root_descriptor, path)
            # EAGAIN: a rename raced with a `..`.
            if error.errno != errno.EAGAIN or attempt == _ATTEMPTS - 1:
                raise
    raise AssertionError("unreachable: the last attempt returns or raises")


def _openat2(root_descriptor: int, path: bytes, how: bytes) -> int:
    return syscall(
        "openat2",
        root_descriptor,
        ctypes.create_string_buffer(path),
        ctypes.create_string_buffer(how, len(how)),
        len(how),
    )


def resolve_by_steps(root_descriptor: int, path: bytes) -> int:
    """openat2's RESOLVE_IN_ROOT by hand: each component with O_NOFOLLOW, symlinks read and put in
    front of what is left.
    """
    above = [os.dup(root_descriptor)]
    parts = _components(path)
    symlinks = 0
    try:
        while parts:
            part = parts.pop()
            if part == b"..":
                if len(above) > 1:
                    os.close(above.pop())
                continue
            step = os.open(part, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above[-1])
            above.append(step)
            if stat.S_ISLNK(os.fstat(step).st_mode):
                symlinks += 1
                if symlinks > _SYMLINKS_LIMIT:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
                target = os.readlink(b"", dir_fd=step)
                for _ in range(len(above) - 1 if target.startswith(b"/") else 1):
                    os.close(above.pop())
                parts += _components(target)
        return above.pop()
    finally:
        for descriptor in above:
            os.close(descriptor)


def _components(path: bytes) -> list[bytes]:
    """Innermost first, so that the next one is at the end."""
    return [part for part in reversed(path.split(b"/")) if part not in (b"", b".")]


def _reopen(place: int) -> int | None:
    status = os.fstat(place)
    if not stat.S_ISREG(status.st_mode) or status.st_size > FILE_LIMIT_BYTES:
        return None
    try:
        return os.open(f"/proc/self/fd/{place}", _READ_FLAGS)
    except OSError:
        return None


def _is_same(status: os.stat_result, device: tuple[int, int], inode: int) -> bool:
    return (os.major(status.st_dev), os.minor(status.st_dev)) == device and status.st_ino == inode


def _was_replaced(descriptor: int, device: tuple[int, int], inode: int) -> bool:
    status = os.fstat(descriptor)
    is_same_device = (os.major(status.st_dev), os.minor(status.st_dev)) == device
    return inode != 0 and is_same_device and status.st_ino != inode


def _open_after_exit(root: Path, path: str, device: tuple[int, int], inode: int) -> int | None:
    node_root = open_root(root)
    if node_root is None:
        return None
    try:
        descriptor = open_in_root(node_root, os.fsencode(path))
    finally:
        os.close(node_root)
    if descriptor is not None and not (inode and _is_same(os.fstat(descriptor), device, inode)):
        os.close(descriptor)
        return None
    return descriptor


def _open_by_mapping(root: Path, pid: int, device: tuple[int, int], inode: int) -> int | None:
    """The very file that is mapped, also if it was deleted since: by `exe` or `map_files` (needs
    CAP_CHECKPOINT_RESTORE).
    """
    for link in _links_of_mapping(root, pid, device, inode):
        try:
            place = os.open(link, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            if _is_same(os.fstat(place), device, inode):
                return _reopen(place)
        finally:
            os.close(place)
    return None


def _links_of_mapping(root: Path, pid: int, device: tuple[int, int], inode: int) -> Iterator[Path]:
    process = root / f"proc/{pid}"
    yield process / "exe"
    for mapping in process_maps.parse(read_bounded(process / "maps", MAPS_LIMIT_BYTES) or b""):
        if (mapping.device_major, mapping.device_minor) == device and mapping.inode == inode:
            yield process / f"map_files/{mapping.start:x}-{mapping.end:x}"
