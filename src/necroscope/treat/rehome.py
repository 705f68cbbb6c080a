"""Pages of tmpfs and shared memory, which no reclaim frees without swap, are charged again to a
living cgroup; their content stays as it is.

A page is charged to the cgroup that writes it first. So a file is copied, and the copy takes its
name; a System V segment, which has no name to take, is emptied and filled again page by page, and
each bite is saved on disk before.
"""

import contextlib
import errno
import fcntl
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from necroscope.treat.bites import Bites
from necroscope.treat.candidates import read_segments
from necroscope.treat.dead_pages import PinningFile
from necroscope.treat.mapped_pages import PAGE_BYTES, WritableSegment, runs

TEMPORARY_FILE, SEGMENT_PAGES = "temporary-file", "segment-pages"
_OPEN: Final = os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
# Of a file system's free space, the most that a copy may take.
_FREE_RATIO: Final = 0.5


@contextlib.contextmanager
def charged_to_root(folder: str) -> Iterator[None]:
    """Runs in the root of a cgroup's hierarchy, which never dies. Charged to the ancestor, the
    pages could not be told from those of its next dead children.
    """
    root = _hierarchy_root(Path(folder))
    home = _own_cgroup(root)
    is_there = home is not None and _enter(root)
    try:
        yield
    finally:
        if is_there and home is not None:
            _enter(home)


def _hierarchy_root(folder: Path) -> Path:
    above = [each for each in (folder, *folder.parents) if (each / "cgroup.procs").exists()]
    return above[-1]


def _own_cgroup(root: Path) -> Path | None:
    """Our own directory in a hierarchy: that of v2, or of the memory controller."""
    is_v2 = (root / "cgroup.controllers").exists()
    lines = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    paths = (
        path
        for number, controllers, path in lines
        if (number == "0" if is_v2 else "memory" in controllers.split(","))
    )
    path = next(paths, None)
    return root / path.lstrip("/") if path is not None else None


def rehome_file(file: PinningFile, name: str, bites: Bites) -> str | None:
    """None if it is done, else why it was left. `name` is that of the copy until it takes the
    file's own.
    """
    folder, _, own_name = file.path.rpartition(b"/")
    directory = os.open(folder or b"/", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        descriptor = os.open(own_name, _OPEN, dir_fd=directory)
        try:
            if os.fstat(descriptor).st_dev != file.device:
                # The directory's owner has put a link to another in its place.
                return "its path leads to another file system now"
            return _replace(descriptor, directory, own_name, name, bites)
        finally:
            os.close(descriptor)
    finally:
        os.close(directory)


def _replace(
    descriptor: int, directory: int, own_name: bytes, name: str, bites: Bites
) -> str | None:
    status = os.fstat(descriptor)
    space = os.fstatvfs(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
        return "it has other names"
    if status.st_size > _FREE_RATIO * space.f_bavail * space.f_frsize:
        return "its file system has no room for a copy"
    try:
        # Granted only while no other process has the file open or mapped; an opener waits for us.
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    except OSError:
        return "a process has it open"
    copy = os.open(".", os.O_RDWR | os.O_TMPFILE | os.O_CLOEXEC, 0o600, dir_fd=directory)
    try:
        _copy(descriptor, copy, status, bites)
        os.link(f"/proc/self/fd/{copy}", name, dst_dir_fd=directory, follow_symlinks=True)
        if fcntl.fcntl(descriptor, fcntl.F_GETLEASE) != fcntl.F_WRLCK:
            os.unlink(name, dir_fd=directory)
            return "a process has opened it meanwhile"
        os.rename(name, own_name, src_dir_fd=directory, dst_dir_fd=directory)
    finally:
        os.close(copy)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    return None


def _copy(source: int, target: int, status: os.stat_result, bites: Bites) -> None:
    """Holes stay holes."""
    os.ftruncate(target, status.st_size)
    place = 0
    while place < status.st_size:
        try:
            start = os.lseek(source, place, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:
                break
            raise
        end = os.lseek(source, start, os.SEEK_HOLE)
        while start < end:
            length = min(bites.pages * PAGE_BYTES, end - start)
            bites.take(_copy_bite, source, target, start, length)
            start += length
        place = end
    os.fchmod(target, stat.S_IMODE(status.st_mode))
    os.fchown(target, status.st_uid, status.st_gid)
    for key in os.listxattr(source):
        os.setxattr(target, key, os.getxattr(source, key))
    os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))


def _copy_bite(source: int, target: int, start: int, length: int) -> None:
    done = 0
    while done < length:
        data = os.pread(source, length - done, start + done)
        if not data:
            return
        done += os.pwrite(target, data, start + done)


def rehome_segment(file: PinningFile, saved: Path, root: Path, bites: Bites) -> str | None:
    """None if it is done, else why it was left. No process may be attached: what they write between
    our read and our write would be lost.
    """
    assert file.segment is not None
    segment = file.segment.segment
    if file.segment.attached:
        return f"{file.segment.attached} processes are attached"
    with WritableSegment(segment) as memory:
        for first, end in runs(file.places, longest=bites.pages):
            if _count_attached(root, segment) != 1:
                return "a process has attached it meanwhile"
            content = memory.read(first, end - first)
            _save(saved, segment, first, content)
            bites.take(memory.remove, first, end - first)
            memory.write(first, content)
            saved.unlink()
    return None


def _count_attached(root: Path, segment: int) -> int | None:
    own = (each.attached for each in read_segments(root) if each.segment == segment)
    return next(own, None)


def _save(path: Path, segment: int, first: int, content: bytes) -> None:
    """On disk, whole or not at all."""
    temporary = path.with_suffix(".new")
    with temporary.open("wb") as file:
        file.write(json.dumps({"segment": segment, "first": first}).encode() + b"\n" + content)
        file.flush()
        os.fsync(file.fileno())
    temporary.rename(path)


def undo_temporary_file(_root: Path, data: dict[str, Any]) -> str:
    path = os.path.join(data["folder"], data["name"])
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
        return f"removed a copy in {data['folder']}"
    return f"no copy was left in {data['folder']}"


def undo_segment_pages(_root: Path, data: dict[str, Any]) -> str:
    """A bite that was not finished is written again."""
    saved = Path(data["saved"])
    saved.with_suffix(".new").unlink(missing_ok=True)
    if not saved.exists():
        return "no page of shared memory was under way"
    head, _, content = saved.read_bytes().partition(b"\n")
    about = json.loads(head)
    with WritableSegment(int(about["segment"])) as memory:
        memory.write(int(about["first"]), content)
    saved.unlink()
    return f"wrote {len(content):,} bytes of shared memory segment {about['segment']} again"


def _enter(folder: Path) -> bool:
    try:
        (folder / "cgroup.procs").write_text(str(os.getpid()))
    except OSError:
        return False
    return True
