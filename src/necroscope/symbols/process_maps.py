"""Executable mappings of a process from /proc/PID/maps (fs/proc/task_mmu.c, show_map_vma). Standard
library only.
"""

import os
from pathlib import Path
from typing import Final, NamedTuple

# Some 600,000 lines, 0.3 s at the 28 ms that 60,000 take: vm.max_map_count may allow millions, few
# of them executable.
_READ_LIMIT_BYTES: Final = 32 << 20


class Mapping(NamedTuple):
    """`path` is the kernel's text, undecodable bytes as surrogates (os.fsdecode): it may name a
    file, `[vdso]` or nothing.
    """

    start: int
    end: int
    file_offset: int
    device_major: int
    device_minor: int
    inode: int
    path: str


def read(path: Path, most: int) -> tuple[list[Mapping], bool] | None:
    """The executable mappings of a process, at most this many, and whether there are more; None if
    they cannot be read.

    Read only as far as needed: a process may have a million mappings, each a line that the kernel
    has to write.
    """
    found: list[Mapping] = []
    rest, size_bytes = b"", 0
    try:
        with path.open("rb", buffering=0) as file:
            while (
                len(found) <= most
                and size_bytes < _READ_LIMIT_BYTES
                and (piece := file.read(1 << 16))
            ):
                size_bytes += len(piece)
                lines, _, rest = (rest + piece).rpartition(b"\n")
                found += parse(lines)
    except OSError:
        return None
    return found[:most], len(found) > most or size_bytes >= _READ_LIMIT_BYTES


def parse(text: bytes) -> list[Mapping]:
    """The executable mappings; lines of another form are left out."""
    return [mapping for line in text.split(b"\n") if (mapping := _parse_line(line)) is not None]


def _parse_line(line: bytes) -> Mapping | None:
    fields = line.split(None, 5)
    if len(fields) < 5 or fields[1][2:3] != b"x":
        return None
    try:
        start, end = (int(part, 16) for part in fields[0].split(b"-"))
        major, minor = (int(part, 16) for part in fields[3].split(b":"))
        file_offset, inode = int(fields[2], 16), int(fields[4])
    except ValueError:
        return None
    # The kernel writes a newline in a path as \012 and nothing else: the one escape it makes
    # (seq_file_path(m, file, "\n")).
    path = fields[5].replace(b"\\012", b"\n") if len(fields) == 6 else b""
    return Mapping(start, end, file_offset, major, minor, inode, os.fsdecode(path))
