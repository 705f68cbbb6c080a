"""Kernel log text: `dmesg` with seconds since boot, -T or ISO times, -x or -r levels, and
`journalctl -k`.

Lines only: what they mean is said by the patterns of the kernel log source, which the caller
applies.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

from necroscope.errors import CorruptData, UsageError
from necroscope.interchange.text_pieces import read_pieces
from necroscope.model.names import LINE_LIMIT, clean
from necroscope.model.units import NS_PER_S, NS_PER_US

# A line that does not say its level has that of most of the kernel's lines.
UNKNOWN_SEVERITY: Final = 6
# An import holds all lines at once, each in some 500 bytes in addition to its text: the kernel
# keeps ten thousand, and a journal of weeks that has more is of a node that writes the same line
# again and again.
MOST_LINES: Final = 1_000_000
MOST_CHARACTERS: Final = 256 << 20
_LEVELS: Final = {
    b"emerg": 0,
    b"alert": 1,
    b"crit": 2,
    b"err": 3,
    b"warn": 4,
    b"notice": 5,
    b"info": 6,
    b"debug": 7,
}
_FACILITIES: Final = {b"kern": 0, b"user": 1, b"mail": 2, b"daemon": 3, b"auth": 4, b"syslog": 5}
_PREFIX: Final = re.compile(
    rb"<(?P<priority>\d{1,4})>|(?P<facility>[a-z0-9]+)"
    rb" *:(?P<level>emerg|alert|crit|err|warn|notice|info|debug) *: "
)
_BOOT: Final = re.compile(rb"\[ *(?P<seconds>\d{1,12})\.(?P<micros>\d{6})\](?:\[ *[TC]\d+\])? ?")
_DATE: Final = re.compile(
    rb"\[(?P<date>[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4})\] ?"
)
_ISO: Final = re.compile(
    rb"(?P<iso>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:[+-]\d\d:?\d\d|Z)?) ?"
)
_SYSLOG: Final = re.compile(rb"(?P<date>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d{1,6})?) ")
# As `clean` writes a newline within a record.
_NEWLINE: Final = "\\x0a"
_SENDER: Final = re.compile(rb"\S+ kernel: ?")


class LogText(NamedTuple):
    """One record. Either `time_ns` (UTC) or `since_boot_ns` (the log's own clock) is known, in some
    forms both; `facility` where the form says it, and with it who wrote the record.
    """

    time_ns: int | None
    since_boot_ns: int | None
    severity: int
    facility: int | None
    message: str


def read_dmesg(path: Path, year: int | None = None, utc_offset_s: int = 0) -> Iterator[LogText]:
    """Records in their order. A line without a time, or in the raw form with the same one, is part
    of the record before: the kernel prints names that users choose, and there may be a newline in
    a name.

    `year` is for `journalctl` times, which have none; `utc_offset_s` is how far the machine's clock
    is ahead of UTC, for forms that do not say. UsageError when the first lines are not a kernel
    log; CorruptData with the byte where it ceases to be text.
    """
    record: LogText | None = None
    seen = 0
    for piece in read_pieces(path):
        for raw in piece.content.split(b"\n"):
            if not raw.strip() or raw.startswith(b"-- "):
                continue
            line = parse_line(raw, year or datetime.now(UTC).year, utc_offset_s)
            seen += 1
            if record is not None and (line is None or _is_same(record, line, raw)):
                text = clean(raw.rstrip(), LINE_LIMIT) if line is None else line.message
                joined = clean(f"{record.message}{_NEWLINE}{text}", LINE_LIMIT)
                record = record._replace(message=joined)
            elif line is not None:
                if record is not None:
                    yield record
                record = line
            elif seen >= 20:
                raise UsageError(
                    f"{path} is not a kernel log: its first {seen} lines have no time",
                    "give what dmesg wrote",
                )
    if record is None:
        raise CorruptData(f"{path} holds no line of a kernel log")
    yield record


def _is_same(record: LogText, line: LogText, raw: bytes) -> bool:
    """Only the raw form repeats the stamp before each line of a record."""
    return raw.startswith(b"<") and 0 != record.since_boot_ns == line.since_boot_ns


def parse_line(raw: bytes, year: int, utc_offset_s: int = 0) -> LogText | None:
    """A line with its time, or None."""
    severity, facility, rest = _take_level(raw)
    time_ns = since_boot_ns = None
    for form in (_BOOT, _DATE, _ISO, _SYSLOG):
        found = form.match(rest)
        if found is None:
            continue
        rest = rest[found.end() :]
        if form is _BOOT:
            since_boot_ns = int(found["seconds"]) * NS_PER_S + int(found["micros"]) * NS_PER_US
            break
        time_ns = _moment_ns(form, found, year, utc_offset_s)
        if time_ns is None:
            return None
        sender = _SENDER.match(rest)
        rest = rest[sender.end() :] if sender else rest
        boot = _BOOT.match(rest)
        if boot is not None:
            since_boot_ns = int(boot["seconds"]) * NS_PER_S + int(boot["micros"]) * NS_PER_US
            rest = rest[boot.end() :]
        break
    else:
        return None
    # Tabs become spaces, so that patterns meet the same text whoever wrote it down.
    return LogText(
        time_ns,
        since_boot_ns,
        severity,
        facility,
        clean(rest.rstrip().replace(b"\t", b" "), LINE_LIMIT),
    )


def _take_level(raw: bytes) -> tuple[int, int | None, bytes]:
    found = _PREFIX.match(raw)
    if found is None:
        return UNKNOWN_SEVERITY, None, raw
    if found["priority"] is not None:
        priority = int(found["priority"])
        return priority & 7, min(priority >> 3, 127), raw[found.end() :]
    return _LEVELS[found["level"]], _FACILITIES.get(found["facility"], 1), raw[found.end() :]


def _moment_ns(
    form: re.Pattern[bytes], found: re.Match[bytes], year: int, utc_offset_s: int
) -> int | None:
    try:
        if form is _ISO:
            text = found["iso"].decode("ascii").replace(",", ".")
            moment = datetime.fromisoformat(text)
        elif form is _DATE:
            moment = datetime.strptime(found["date"].decode("ascii"), "%a %b %d %H:%M:%S %Y")
        else:
            text = found["date"].decode("ascii")
            moment = datetime.strptime(
                f"{year} {text}", "%Y %b %d %H:%M:%S.%f" if "." in text else "%Y %b %d %H:%M:%S"
            )
        ahead_s = 0 if moment.tzinfo is not None else utc_offset_s
        moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        return (
            int(moment.replace(microsecond=0).timestamp()) - ahead_s
        ) * NS_PER_S + moment.microsecond * NS_PER_US
    except (ValueError, OverflowError):
        return None
