"""Executable mappings of a process from /proc/PID/maps (fs/proc/task_mmu.c, show_map_vma). Standard library only."""

import os
from typing import NamedTuple


class Mapping(NamedTuple):
    """`path` is the kernel's text, undecodable bytes as surrogates (os.fsdecode): it may name a file, `[vdso]` or nothing."""

    start: int
    end: int
    file_offset: int
    device_major: int
    device_minor: int
    inode: int
    path: str


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
    # The kernel writes a newline in a path as \012 and nothing else: the one escape it makes (seq_file_path(m, file, "\n")).
    path = fields[5].replace(b"\\012", b"\n") if len(fields) == 6 else b""
    return Mapping(start, end, file_offset, major, minor, inode, os.fsdecode(path))
