"""Copies of /proc/stat, /proc/interrupts, /proc/cgroups and cgroup.stat, once or again and again in
one text, with or without the date between them; and lists of cgroup directories, as `find` prints
them.

    Wed Apr 15 10:30:00 UTC 2026      date, date -Is, date +%s, or OSWatcher's zzz ***
    cpu  1834 0 2201 ...              /proc/stat
    memory  5  68680  1               /proc/cgroups: how many the kernel holds
    /sys/fs/cgroup/memory/kubepods    find /sys/fs/cgroup/memory -type d: how many can be seen
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

from necroscope.interchange.text_pieces import read_pieces
from necroscope.model.units import NS_PER_S

STAT, INTERRUPTS, CGROUPS, STATS, DIRECTORIES = "stat", "interrupts", "cgroups", "stats", "find"
# A section of a machine with thousands of cores; what is longer is not one of these files.
_MOST_BYTES: Final = 64 << 20
_CPUS: Final = re.compile(rb"\s+CPU\d+(?:\s+CPU\d+)*\s*")
_INTERRUPT: Final = re.compile(rb"\s*[\w-]{1,20}:\s+\d.*")
_CPU: Final = re.compile(rb"cpu\d* +\d+ .*")
_OF_STAT: Final = re.compile(
    rb"(?:cpu\d*|intr|ctxt|btime|processes|procs_running|procs_blocked|softirq|page|swap) .*"
)
_CGROUP: Final = re.compile(rb"([a-z_]{2,32})\s+(\d{1,9})\s+(\d{1,12})\s+[01]\s*")
_CGROUPS_HEADING: Final = re.compile(rb"#subsys_name\s+hierarchy\s+num_cgroups.*")
_CGROUP_STAT: Final = re.compile(rb"nr_[a-z_]{1,60} \d{1,12}\s*")
_DIRECTORY: Final = re.compile(rb"(?:/host)?/sys/fs/cgroup(/[^\0]*)?")
_EPOCH: Final = re.compile(rb"(1\d{9})(?:\.(\d{1,9}))?")
_ISO: Final = re.compile(rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:[+-]\d\d:?\d\d|Z)?")
_DATE: Final = re.compile(
    rb"(?:zzz \*\*\*)?[A-Z][a-z]{2} ([A-Z][a-z]{2}) +(\d{1,2}) (\d\d:\d\d:\d\d)"
    rb"(?: ([AP]M))?(?: ([A-Z]{2,5}|[+-]\d\d))? (\d{4})"
)
_KIND_OF: Final = (
    (_CPU, STAT),
    (_CPUS, INTERRUPTS),
    (_CGROUPS_HEADING, CGROUPS),
    (_CGROUP, CGROUPS),
    (_CGROUP_STAT, STATS),
    (_DIRECTORY, DIRECTORIES),
)
_GOES_ON: Final = {
    STAT: _OF_STAT,
    INTERRUPTS: _INTERRUPT,
    CGROUPS: _CGROUP,
    STATS: _CGROUP_STAT,
    DIRECTORIES: _DIRECTORY,
}


class Snapshot(NamedTuple):
    """One file as it was at a moment; `time_ns` is None where the text does not say when."""

    kind: str
    time_ns: int | None
    lines: list[bytes]


def kind_of(line: bytes) -> str | None:
    """Which file begins with such a line."""
    return next((kind for form, kind in _KIND_OF if form.fullmatch(line)), None)


def parse_stamp(line: bytes, utc_offset_s: int = 0) -> int | None:
    """A date that stands alone on its line, in ns UTC."""
    text = line.strip()
    if epoch := _EPOCH.fullmatch(text):
        return int(epoch[1]) * NS_PER_S + int((epoch[2] or b"0").ljust(9, b"0"))
    try:
        if _ISO.fullmatch(text):
            moment = datetime.fromisoformat(text.decode().replace(",", "."))
            ahead_s = 0 if moment.tzinfo is not None else utc_offset_s
        elif found := _DATE.fullmatch(text):
            month, day, clock, half, zone, year = (
                part.decode() if part else "" for part in found.groups()
            )
            form = "%Y %b %d %I:%M:%S %p" if half else "%Y %b %d %H:%M:%S"
            moment = datetime.strptime(f"{year} {month} {day} {clock} {half}".strip(), form)
            ahead_s = 0 if zone in ("UTC", "GMT") else utc_offset_s
        else:
            return None
        moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        return (int(moment.timestamp()) - ahead_s) * NS_PER_S
    except (ValueError, OverflowError):
        return None


def read_snapshots(path: Path, utc_offset_s: int = 0) -> Iterator[Snapshot]:
    """In their order; a date holds for all that follows it, until the next. CorruptData for what is
    not text.
    """
    kind: str | None = None
    time_ns: int | None = None
    lines: list[bytes] = []
    size = 0
    for line in (line for piece in read_pieces(path) for line in piece.content.split(b"\n")):
        if (
            kind is not None
            and not _begins_again(kind, line, lines)
            and _GOES_ON[kind].fullmatch(line)
        ):
            size += len(line)
            if size <= _MOST_BYTES:
                lines.append(line)
            continue
        if kind is not None:
            yield Snapshot(kind, time_ns, lines)
        stamp_ns = parse_stamp(line, utc_offset_s)
        time_ns = time_ns if stamp_ns is None else stamp_ns
        kind, lines, size = (kind_of(line), [line], len(line)) if line.strip() else (None, [], 0)
    if kind is not None:
        yield Snapshot(kind, time_ns, lines)


def _begins_again(kind: str, line: bytes, lines: list[bytes]) -> bool:
    """The same file once more, without a line between."""
    if kind == STAT:
        return line.startswith(b"cpu ") and len(lines) > 1
    if kind == CGROUPS:
        return line.startswith(lines[0].split()[0] + b"\t") and len(lines) > 1
    return False
