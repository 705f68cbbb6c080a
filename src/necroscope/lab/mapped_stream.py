"""A process that walks through a large mapped file, so that page cache comes and, under pressure,
has to go again.
"""

import mmap
import os
import time
from pathlib import Path

_MADV_POPULATE_READ = 22
_STEP_BYTES = 8 << 20


def make_file(path: Path, size_bytes: int) -> None:
    """Sparse: its pages are in memory once read, and never on the disk."""
    with path.open("wb") as file:
        file.truncate(size_bytes)


def read_once(path: str) -> None:
    """So that the file is in the page cache."""
    with open(path, "rb", buffering=0) as file:
        while file.read(_STEP_BYTES):
            pass


def stream(path: str, start_bytes: int, pause_s: float) -> None:
    """Map every page of the file in turn, round and round; with the pauses it has little to do
    while memory is there.
    """
    descriptor = os.open(path, os.O_RDONLY)
    area = mmap.mmap(descriptor, 0, flags=mmap.MAP_SHARED, prot=mmap.PROT_READ)
    offset = start_bytes
    while True:
        offset = offset % (len(area) - _STEP_BYTES)
        area.madvise(_MADV_POPULATE_READ, offset, _STEP_BYTES)
        offset += _STEP_BYTES
        time.sleep(pause_s)
