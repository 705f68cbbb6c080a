"""A process that walks through a large mapped file, so that page cache comes and, under pressure, has to go again."""

import mmap
import os
from pathlib import Path

_MADV_POPULATE_READ = 22
_STEP_BYTES = 8 << 20


def make_file(path: Path, size_bytes: int) -> None:
    """Sparse: its pages are in memory once read, and never on the disk."""
    with path.open("wb") as file:
        file.truncate(size_bytes)


def stream(path: str, start_bytes: int) -> None:
    """Map every page of the file in turn, round and round; each process that does so makes its reclaim dearer."""
    descriptor = os.open(path, os.O_RDONLY)
    area = mmap.mmap(descriptor, 0, flags=mmap.MAP_SHARED, prot=mmap.PROT_READ)
    offset = start_bytes
    while True:
        offset = offset % (len(area) - _STEP_BYTES)
        area.madvise(_MADV_POPULATE_READ, offset, _STEP_BYTES)
        offset += _STEP_BYTES
