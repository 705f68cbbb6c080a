"""What kind of file somebody gave us, by its first bytes and lines."""

import gzip
import re
import zlib
from enum import Enum
from pathlib import Path
from typing import Final

from necroscope.errors import UsageError
from necroscope.interchange.dmesg import parse_line as parse_dmesg_line
from necroscope.interchange.folded import parse_line as parse_folded_line
from necroscope.interchange.perf_data.format import MAGIC, MAGIC_BIG_ENDIAN, MAGIC_OLD
from necroscope.interchange.perf_script import parse_header
from necroscope.interchange.proc_files import kind_of, parse_stamp
from necroscope.interchange.sar import MAGICS, is_heading
from necroscope.interchange.sysstat_text import STAMP
from necroscope.interchange.unreadable import unreadable
from necroscope.model.names import clean

_HEAD_BYTES: Final = 1 << 16
_MPSTAT: Final = re.compile(rb"^Linux \S+ \([^)]*\)\s+\S+\s+_\w+_\s+\(\d+ CPU\)", re.MULTILINE)
_HINT: Final = (
    "give perf.data, the text of `perf script`, folded stacks, `mpstat -P ALL` or `sar -A` as text"
    " or JSON, dmesg, copies of /proc/stat, interrupts or cgroups, or a support bundle; gzipped or"
    " not"
)


class FileKind(Enum):
    PERF_DATA = "perf.data"
    PERF_SCRIPT = "perf script"
    FOLDED = "folded stacks"
    MPSTAT = "mpstat"
    SAR = "sar"
    PROC = "copies of /proc"
    DMESG = "dmesg"


def detect(path: Path) -> FileKind:
    """UsageError with the first bytes for what is none of them; a gzipped perf.data has to be
    unpacked first.
    """
    head, is_packed = _head(path)
    if head[:8] in (MAGIC, MAGIC_BIG_ENDIAN, MAGIC_OLD):
        if is_packed:
            raise UsageError(f"{path} is a gzipped perf.data", "unpack it first: gunzip -k FILE")
        return FileKind.PERF_DATA
    if not head:
        raise UsageError(
            f"{path} is empty", "the tool that was to write it did not finish: capture again"
        )
    if head[:2] in MAGICS and b"\0" in head:
        return FileKind.SAR
    if b"\0" not in head:
        kind = _kind_of_text(head)
        if kind is not None:
            return kind
    raise UsageError(
        f"{path} is not a file that can be imported: it begins with {clean(head[:32])!r}", _HINT
    )


def _head(path: Path) -> tuple[bytes, bool]:
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError as error:
        raise unreadable(path, error) from None
    if head[:2] != b"\x1f\x8b":
        return head, False
    try:
        with gzip.open(path) as packed:
            return packed.read(_HEAD_BYTES), True
    except (OSError, EOFError, zlib.error) as error:
        raise UsageError(
            f"{path} is a broken gzip file: {clean(str(error))}",
            "copy it again, or unpack what is left of it: zcat FILE > TEXT",
        ) from None


def _kind_of_text(head: bytes) -> FileKind | None:
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
