"""What travels through the kernel log source: a line in, events and alarms out."""

import re
from typing import Final, NamedTuple, Protocol

from necroscope.model.names import LINE_LIMIT, clean
from necroscope.model.reading import Gap, Row

# The mark of what a daemon forwards to /dev/kmsg for a program that asked for it (journald.conf,
# ForwardToKMsg=; systemd#24139 without it). Only root writes there without this mark.
FORWARDED: Final = re.compile(r"\[\d+\]: ", re.ASCII)
# How `clean` writes a newline within a record.
NEWLINE: Final = "\\x0a"


class LogLine(NamedTuple):
    """One record of the log, which stays one: a newline in it is a driver's, or part of a name that
    a user chose, and only the pattern of its beginning tells which.

    `sequence` is its key within a boot; `by_kernel` is False where any process may have written it.
    """

    time_ns: int
    sequence: int | None
    severity: int
    facility: int
    by_kernel: bool
    text: str

    def row(self) -> Row:
        return (self.time_ns, self.sequence, self.severity, self.facility, self.text)


class LogReader(Protocol):
    """Where lines come from. None of its methods ever waits. `settles_ns`: how long old lines may
    come in after the opening.
    """

    name: str
    settles_ns: int

    def fileno(self) -> int | None:
        """A descriptor that becomes readable when a line comes, or None."""

    def read_lines(self, limit: int) -> list[LogLine]:
        """About `limit` lines; an empty list means that there is no more now. SourceUnavailable
        when the log is gone.
        """

    def take_gaps(self, now_ns: int) -> list[Gap]:
        """What was lost since the last call."""

    def close(self) -> None: ...


def clean_line(raw: bytes | str) -> str:
    """A printable, bounded line. Tabs become spaces, so that patterns meet the same text whoever
    wrote it down.
    """
    if isinstance(raw, bytes):
        raw = raw.decode("utf-8", "backslashreplace")
    return clean(raw.replace("\t", " "), LINE_LIMIT)
