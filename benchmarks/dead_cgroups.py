"""Real dead memory cgroups of three kinds of pins, below a cgroup of their own, with live
neighbours whose cache must stay; all of it is removed by `close`.
"""

import ctypes
import hashlib
import multiprocessing
import os
import secrets
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from necroscope.treat.candidates import read_segments
from necroscope.treat.mapped_pages import PAGE_BYTES, PageTable, WritableSegment

HIERARCHY: Final = Path("/sys/fs/cgroup/memory")
SEGMENT_PAGES: Final = 100
_IPC_CREAT, _IPC_RMID = 0o1000, 0


class DeadCgroups:
    """`pods` is the live parent of the dead, `cached` the file of a live neighbour."""

    def __init__(self, name: str) -> None:
        self.top = HIERARCHY / name
        self.pods, self.neighbour = self.top / "pods", self.top / "neighbour"
        self.disk = Path(tempfile.mkdtemp(prefix=f"{name}-", dir="/var/tmp"))
        self.memory = Path(tempfile.mkdtemp(prefix=f"{name}-", dir="/dev/shm"))
        self.cached = self.disk / "cached"
        self.segments: list[int] = []
        self.pods.mkdir(parents=True)
        self.neighbour.mkdir()
        (self.disk / "files").mkdir()

    @property
    def below(self) -> str:
        return f"/{self.top.name}"

    def add(self, of_disk: int, of_tmpfs: int, of_segments: int) -> None:
        needed = -(-of_segments // SEGMENT_PAGES)
        made = [_make_segment(SEGMENT_PAGES * PAGE_BYTES) for _ in range(needed)]
        self.segments += made
        in_child(_leak_files, self.pods, self.disk / "files", of_disk)
        in_child(_leak_files, self.pods, self.memory, of_tmpfs)
        in_child(_leak_segments, self.pods, made, of_segments)
        os.sync()
        time.sleep(0.5)  # a cgroup is dead a moment after it was removed

    def add_neighbour(self, size_bytes: int) -> None:
        """A live cgroup reads a file."""
        in_child(cache_file, self.neighbour, self.cached, size_bytes)

    def cached_pages(self) -> int:
        descriptor, table = os.open(self.cached, os.O_RDONLY), PageTable()
        try:
            size = os.fstat(descriptor).st_size
            return sum(len(window.places) for window in table.of_file(descriptor, size))
        finally:
            table.close()
            os.close(descriptor)

    def digest(self) -> str:
        """Of all content that no treatment may change."""
        digest = hashlib.sha256()
        for folder in (self.disk / "files", self.memory):
            for file in sorted(folder.iterdir()):
                status = file.stat()
                digest.update(f"{file} {status.st_mode} {status.st_mtime_ns}".encode())
                digest.update(file.read_bytes())
        for segment in self.segments:
            with WritableSegment(segment) as memory:
                digest.update(memory.read(0, SEGMENT_PAGES))
        return digest.hexdigest()

    def close(self) -> None:
        library = ctypes.CDLL(None)
        for segment in {each.segment for each in read_segments(Path("/"))} & set(self.segments):
            library.shmctl(segment, _IPC_RMID, None)
        shutil.rmtree(self.memory, ignore_errors=True)
        shutil.rmtree(self.disk, ignore_errors=True)
        for folder in (self.pods, self.neighbour, self.top):
            folder.rmdir()


def in_child(work: Callable[..., None], *arguments: object) -> None:
    """A process of its own: it moves between cgroups."""
    child = multiprocessing.get_context("fork").Process(target=work, args=arguments)
    child.start()
    child.join()
    if child.exitcode:
        raise subprocess.CalledProcessError(child.exitcode, work.__name__)


def _live_and_die(pods: Path, count: int, pin: Callable[[int], None]) -> None:
    """Each lives just long enough to be charged for one page."""
    own = str(os.getpid()).encode()
    home = os.open(pods.parent / "cgroup.procs", os.O_WRONLY)
    for number in range(count):
        folder = pods / secrets.token_hex(32)
        folder.mkdir()
        (folder / "cgroup.procs").write_bytes(own)
        pin(number)
        os.write(home, own)
        folder.rmdir()


def _leak_files(pods: Path, folder: Path, count: int) -> None:
    def pin(_number: int) -> None:
        path = folder / secrets.token_hex(12)
        path.write_bytes(secrets.token_bytes(PAGE_BYTES))

    _live_and_die(pods, count, pin)


def _leak_segments(pods: Path, segments: list[int], count: int) -> None:
    attached = [WritableSegment(segment).__enter__() for segment in segments]

    def pin(number: int) -> None:
        place = number % SEGMENT_PAGES
        attached[number // SEGMENT_PAGES].write(place, secrets.token_bytes(PAGE_BYTES))

    _live_and_die(pods, count, pin)


def cache_file(cgroup: Path, file: Path, size_bytes: int) -> None:
    (cgroup / "cgroup.procs").write_text(str(os.getpid()))
    with file.open("wb") as target:
        for _ in range(size_bytes >> 20):
            target.write(bytes(1 << 20))
        os.fsync(target.fileno())


def _make_segment(size_bytes: int) -> int:
    segment = int(ctypes.CDLL(None).shmget(0, ctypes.c_size_t(size_bytes), _IPC_CREAT | 0o600))
    if segment < 0:
        raise OSError("cannot make a shared memory segment")
    return segment
