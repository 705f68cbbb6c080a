"""Directories of rolling captures, as a loop of `perf record` leaves them:
perf-HOST-DATE-120s.data, *.stacks, *.stacks.gz.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from necroscope.errors import UsageError
from necroscope.interchange.unreadable import unreadable
from necroscope.model.units import NS_PER_S

_SUFFIXES: Final = {
    ".data": "perf.data",
    ".perf": "perf.data",
    ".stacks": "perf script",
    ".stacks.gz": "perf script",
}
_SUFFIX: Final = re.compile(r"(\.data|\.perf|\.stacks\.gz|\.stacks)$")
_LENGTH: Final = re.compile(r"[-_.](\d{1,6})s$")
_DATE: Final = re.compile(
    r"(?P<year>20\d\d)[-_]?(?P<month>\d\d)[-_]?(?P<day>\d\d)"
    r"(?:[-_T .]?(?P<hour>\d\d)[-_:.]?(?P<minute>\d\d)(?:[-_:.]?(?P<second>\d\d))?)?(?P<utc>Z)?"
)
_EPOCH: Final = re.compile(r"(?<!\d)(1\d{9})(?!\d)")


@dataclass(frozen=True, slots=True)
class RollingCapture:
    """`start_ns` and `length_ns` are what the name says; the start is taken for UTC, moved by the
    offset that was given.
    """

    path: Path
    kind: str
    host: str | None
    start_ns: int | None
    length_ns: int | None


def list_rolling(
    folder: Path, utc_offset_s: int = 0, *, prefers_text: bool = True
) -> list[RollingCapture]:
    """The captures of a directory in the order of their start, those without a date by name;
    UsageError when there are none.

    Of a capture and the text made of it (x.data and x.data.stacks) one is taken: the text, whose
    names were found on the machine itself, unless it is empty or `prefers_text` is not set.
    """
    try:
        paths = sorted(
            path for path in folder.iterdir() if _SUFFIX.search(path.name) and path.is_file()
        )
    except OSError as error:
        raise unreadable(folder, error) from None
    if not paths:
        raise UsageError(
            f"{folder} holds no capture", "captures are named *.data, *.stacks or *.stacks.gz"
        )
    kept = _without_twins(paths, prefers_text=prefers_text)
    found = [parse_name(path, utc_offset_s) for path in kept]
    return sorted(
        found,
        key=lambda capture: (capture.start_ns is None, capture.start_ns or 0, capture.path.name),
    )


def _without_twins(paths: list[Path], *, prefers_text: bool) -> list[Path]:
    twins: dict[str, list[Path]] = {}
    for path in paths:
        twins.setdefault(_stem(path.name), []).append(path)
    return [_best(own, prefers_text=prefers_text) for own in twins.values()]


def _best(twins: list[Path], *, prefers_text: bool) -> Path:
    """perf script of a text, by a loop that was run twice, leaves an empty file."""

    def rank(path: Path) -> tuple[bool, bool, int]:
        is_text = _kind(path.name) == "perf script"
        return _is_empty(path), is_text != prefers_text, len(path.name)

    return min(twins, key=rank)


def _is_empty(path: Path) -> bool:
    try:
        return path.stat().st_size == 0
    except OSError:
        return False


def _stem(name: str) -> str:
    while (suffix := _SUFFIX.search(name)) is not None:
        name = name[: suffix.start()]
    return name


def _kind(name: str) -> str:
    suffix = _SUFFIX.search(name)
    return _SUFFIXES[suffix[1]] if suffix else "unknown"


def parse_name(path: Path, utc_offset_s: int = 0) -> RollingCapture:
    stem, kind = _stem(path.name), _kind(path.name)
    length = _LENGTH.search(stem)
    stem = stem[: length.start()] if length else stem
    dated = _DATE.search(stem) or _EPOCH.search(stem)
    start_ns = _start_ns(dated, utc_offset_s) if dated else None
    before = stem[: dated.start()] if dated else stem
    host = re.sub(r"^(perf|profile|stacks)[-_.]", "", before).strip("-_. ") or None
    host = None if host in ("perf", "profile", "stacks") else host
    return RollingCapture(path, kind, host, start_ns, int(length[1]) * NS_PER_S if length else None)


def _start_ns(found: re.Match[str], utc_offset_s: int) -> int | None:
    if "year" not in found.re.groupindex:
        return int(found[1]) * NS_PER_S
    parts = [int(found[name] or 0) for name in ("year", "month", "day", "hour", "minute", "second")]
    try:
        moment = datetime(parts[0], parts[1], parts[2], parts[3], parts[4], parts[5], tzinfo=UTC)
    except ValueError:
        return None
    return (int(moment.timestamp()) - (0 if found["utc"] else utc_offset_s)) * NS_PER_S
