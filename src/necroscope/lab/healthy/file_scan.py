"""A large file is read from its beginning to its end.

What it does: a process reads a file of a GiB through the page cache, as fast as the disk gives it,
and lets go of it when it is through; so it is read from the disk again next time. The file is
removed after the run.

Seen in the wild: backups, checksums, uploads of checkpoints, the first epoch of every training.
Work stalls for I/O most of the time and at a level that hardly changes, and where memory is full of
caches kswapd works as fast as the file is read.

What must be seen: nothing wrong: what is read comes, what is dropped is not wanted again.
"""

import os
import shutil
import time
from typing import Final

from necroscope.lab.busy import busy_and_well
from necroscope.lab.measured import Measurements
from necroscope.lab.scenario import CannotProvoke, Scenario, Truth, reached
from necroscope.lab.stage import Stage

_FILE_BYTES: Final = 1 << 30
_PIECE_BYTES: Final = 1 << 20
_WRITE_S: Final = 150.0


def write_file(path: str, size_bytes: int) -> None:
    """On the disk, and no longer in memory."""
    piece = os.urandom(_PIECE_BYTES)
    with open(path, "wb") as file:
        for _ in range(size_bytes // _PIECE_BYTES):
            file.write(piece)
        file.flush()
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def read_through(path: str, log: str) -> None:
    """From the disk, again and again as long as it lives; how much that was into a file."""
    buffer, total, due_s = bytearray(_PIECE_BYTES), 0, 0.0
    with open(log, "w", encoding="ascii") as read, open(path, "rb", buffering=0) as file:
        while True:
            count = file.readinto(buffer)
            total += count or 0
            if not count:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                file.seek(0)
            if time.monotonic() >= due_s:
                due_s = time.monotonic() + 0.1
                read.seek(0)
                read.write(f"read {total}\n")
                read.flush()


class FileScan(Scenario):
    name = "file-scan"
    twin = "blocked-io"
    seconds = 15
    needs = ("ip",)

    def prepare(self, stage: Stage) -> None:
        if shutil.disk_usage(stage.scratch).free < 4 * _FILE_BYTES:
            raise CannotProvoke(
                f"less than 4 GiB are free in {stage.scratch.parent}", "free some room"
            )
        stage.make_network(gap_s=0.02)
        self.file = stage.scratch / f"{stage.invent('app')}.tar"
        if code := stage.start(
            write_file, str(self.file), _FILE_BYTES, comm=stage.invent("tool")
        ).wait(_WRITE_S):
            raise CannotProvoke(f"cannot write {self.file} ({code}): {stage.output()}")

    def provoke(self, stage: Stage) -> None:
        self.log = stage.watch(stage.scratch / stage.invent("tool"))
        stage.hold(
            stage.start(read_through, str(self.file), str(self.log), comm=stage.invent("app"))
        )

    def verify(self, stage: Stage, measured: Measurements) -> Truth:
        truth = busy_and_well(stage, measured, least_busy=0.02)
        rate = measured.growth(self.log, "read") / stage.seconds
        truth.impact["bytes_per_s"] = reached("bytes per second", rate, at_least=10e6)
        return truth
