"""What kind of file it is that is not perf.data: text by its first lines, sar's binary days."""

import re
from typing import Final

from necroscope.interchange.detect import FileKind
from necroscope.interchange.dmesg import parse_line as parse_dmesg_line
from necroscope.interchange.folded import parse_line as parse_folded_line
from necroscope.interchange.perf_script import parse_header
from necroscope.interchange.proc_files import kind_of, parse_stamp
from necroscope.interchange.sar import MAGICS, is_heading
from necroscope.interchange.sysstat_text import STAMP

_MPSTAT: Final = re.compile(rb"^Linux \S+ \([^)]*\)\s+\S+\s+_\w+_\s+\(\d+ CPU\)", re.MULTILINE)


def kind_of_other(head: bytes) -> FileKind | None:
    """Of a file that is not perf.data, by its first bytes."""
    if b"\0" in head:
        return FileKind.SAR if head[:2] in MAGICS else None
    if b'"sysstat"' in head[:4096] or _MPSTAT.search(head[:4096]):
        return FileKind.SAR if _is_sar(head) else FileKind.MPSTAT
    lines = [
        line
        for line in head.split(b"\n")[:-1] or [head]
        if line.strip() and not line.startswith((b"#", b"-- "))
    ][:50]
    if _is_proc(lines):
        return FileKind.PROC
    # A kernel log's `[  12.345678]` looks like a core and a time to the reader of perf script, so
    # it is asked for first.
    if any(parse_dmesg_line(line, 2000) is not None for line in lines[:5]):
        return FileKind.DMESG
    if any(parse_header(line) is not None for line in lines):
        return FileKind.PERF_SCRIPT
    if lines and parse_folded_line(lines[0]) is not None:
        return FileKind.FOLDED
    return None


def _is_sar(head: bytes) -> bool:
    """mpstat has one kind of heading, of cores, and a moment that is a text; sar's lines of names
    are many, and in the JSON of sadf a moment has parts.
    """
    if head.lstrip()[:1] == b"{":
        return re.search(rb'"timestamp"\s*:\s*\{', head) is not None
    stamps = [found for line in head.split(b"\n") if (found := STAMP.match(line)) is not None]
    names = [found[5].split() for found in stamps]
    headings = {tuple(fields) for fields in names if is_heading(fields)}
    return any(fields[0] != b"CPU" or b"%system" in fields for fields in headings)


def _is_proc(lines: list[bytes]) -> bool:
    """A copy of /proc/stat or one of its like, after a date or at once."""
    begins = [line for line in lines[:5] if parse_stamp(line) is None]
    return bool(begins) and kind_of(begins[0]) is not None
