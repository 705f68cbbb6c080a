"""The kernel's lines from a file that a syslog daemon writes (RFC 3164 or ISO 8601 stamps),
followed through its rotation.
"""

import os
import re
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Final

from necroscope.errors import SourceUnavailable
from necroscope.model.reading import Gap
from necroscope.model.units import NS_PER_S, NS_PER_US
from necroscope.sources.kernel_log.byte_lines import ByteLines
from necroscope.sources.kernel_log.line import NEWLINE, LogLine, clean_line

# The kernel's facility has a file of its own in kern.log; into the others any process can write
# `kernel: ` with logger(1).
FILES: Final = {"var/log/kern.log": True, "var/log/messages": False, "var/log/syslog": False}
HISTORY_BYTES: Final = 256 * 1024
# The file does not hold the level; 6 is the level of most of the kernel's lines.
UNKNOWN_SEVERITY: Final = 6
_PIECE_BYTES: Final = 64 * 1024
_PIECES: Final = 16
# How far the daemon's stamp and the kernel's own may lie apart; farther, and the line is of an
# earlier boot.
_SAME_BOOT_NS: Final = 120 * NS_PER_S
_LINE: Final = re.compile(
    rb"(?P<stamp>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT\S+) \S+ kernel: ?"
    rb"(?:\[ *(?P<seconds>\d{1,12})\.(?P<micros>\d{6})\] ?)?(?P<text>.*)"
)
# rsyslog writes control characters as #NNN in octal.
_OCTAL: Final = re.compile(rb"#(0[0-3][0-7]|177)")


def parse(
    raw: bytes, now_ns: int, to_time_ns: Callable[[int], int], by_kernel: bool
) -> LogLine | None:
    """A line of the kernel's, or None. The kernel's own stamp is the finer one, where it is of this
    boot.

    It then stands for the sequence number too, where no other process can have written it: it is
    the same whenever the file is read. Without it nothing tells where a record begins: the line may
    be the second half of a name that a user chose.
    """
    match = _LINE.match(raw)
    if match is None:
        return None
    try:
        time_ns = _stamp_ns(match["stamp"].decode("ascii"), now_ns)
    except (ValueError, OverflowError):
        return None
    sequence = None
    if match["seconds"] is not None:
        stamp_us = int(match["seconds"] + match["micros"])
        kernel_ns = to_time_ns(stamp_us * NS_PER_US)
        if abs(kernel_ns - time_ns) <= _SAME_BOOT_NS:
            time_ns, sequence = kernel_ns, stamp_us if by_kernel else None
    return LogLine(
        time_ns,
        sequence,
        UNKNOWN_SEVERITY,
        0,
        sequence is not None,
        clean_line(_OCTAL.sub(lambda octal: bytes((int(octal[1], 8),)), match["text"])),
    )


def _stamp_ns(stamp: str, now_ns: int) -> int:
    """`2026-04-15T10:30:00.25+02:00`, or `Apr 15 10:30:00` in this machine's zone, of the last
    twelve months.
    """
    if stamp[0].isdigit():
        moment = datetime.fromisoformat(stamp)
        return (
            int(moment.replace(microsecond=0).timestamp()) * NS_PER_S
            + moment.microsecond * NS_PER_US
        )
    year = time.localtime(now_ns // NS_PER_S).tm_year
    for candidate in (year, year - 1):
        try:
            time_ns = (
                int(datetime.strptime(f"{candidate} {stamp}", "%Y %b %d %H:%M:%S").timestamp())
                * NS_PER_S
            )
        except ValueError:
            # February 29 of a year that has none.
            continue
        if time_ns <= now_ns + 86400 * NS_PER_S:
            return time_ns
    raise ValueError(stamp)


class SyslogReader:
    """Follows one file by inode and size: renamed and re-created, or cut in place."""

    settles_ns = 0

    def __init__(
        self,
        path: Path,
        to_time_ns: Callable[[int], int],
        by_kernel: bool,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self.name = str(path)
        self._path = path
        self._to_time_ns = to_time_ns
        self._by_kernel = by_kernel
        self._clock = clock
        self._lines = ByteLines()
        self._last: LogLine | None = None
        self._gaps = ["severity not known: a syslog file does not hold it"]
        self._descriptor = self._open()
        self._offset = max(0, os.fstat(self._descriptor).st_size - HISTORY_BYTES)

    @classmethod
    def open(cls, root: Path, to_time_ns: Callable[[int], int]) -> "SyslogReader":
        for name, by_kernel in FILES.items():
            if (root / name).is_file():
                return cls(root / name, to_time_ns, by_kernel)
        raise SourceUnavailable(f"none of /{', /'.join(FILES)}")

    def fileno(self) -> None:
        return None

    def read_lines(self, limit: int) -> list[LogLine]:
        lines: list[LogLine] = []
        now_ns = self._clock()
        # Most of a shared file may be other programs' lines: a call reads a bounded part of it.
        for _ in range(_PIECES):
            piece = os.pread(self._descriptor, _PIECE_BYTES, self._offset)
            if len(lines) >= limit or (not piece and not self._moves_on()):
                break
            self._offset += len(piece)
            for raw in self._lines.feed(piece):
                line = parse(raw, now_ns, self._to_time_ns, self._by_kernel)
                if line is not None:
                    lines += self._join(line)
        if not lines and self._last is not None:
            lines, self._last = [self._last], None
        return lines

    def _join(self, line: LogLine) -> list[LogLine]:
        """The record before this line, if this line is not a part of it. The kernel prints a record
        of several lines with its one stamp before each.
        """
        before = self._last
        if before is not None and line.sequence == before.sequence:
            self._last = before._replace(text=clean_line(before.text + NEWLINE + line.text))
            return []
        self._last = line if line.sequence is not None else None
        return [*([before] if before else []), *([] if self._last else [line])]

    def take_gaps(self, now_ns: int) -> list[Gap]:
        gaps = [Gap("log", now_ns, now_ns, cause) for cause in self._gaps]
        self._gaps.clear()
        return gaps

    def close(self) -> None:
        os.close(self._descriptor)

    def _open(self) -> int:
        try:
            return os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise SourceUnavailable(f"cannot open {self._path}: {error.strerror}") from None

    def _moves_on(self) -> bool:
        """At the end of what we have: was the file cut, or is there a new one? The old one has been
        read to its end.
        """
        ours = os.fstat(self._descriptor)
        if ours.st_size < self._offset:
            self._offset = 0
            self._lines.clear()
            self._gaps.append("syslog file was cut in place: lines may be lost")
            return ours.st_size > 0
        try:
            named = os.stat(self._path)
        except OSError:
            # Between the rename and the new file.
            return False
        if (named.st_ino, named.st_dev) == (ours.st_ino, ours.st_dev):
            return False
        descriptor = self._open()
        os.close(self._descriptor)
        self._descriptor, self._offset = descriptor, 0
        self._lines.clear()
        return True
