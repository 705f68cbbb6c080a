"""/dev/kmsg: every record of the kernel's log buffer, from the oldest one on
(Documentation/ABI/testing/dev-kmsg).
"""

import errno
import os
import re
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from necroscope.errors import SourceUnavailable
from necroscope.model.reading import Gap
from necroscope.model.units import NS_PER_US
from necroscope.sources.kernel_log.line import LogLine, clean_line

# A record is at most 8 KiB (CONSOLE_EXT_LOG_MAX); a read into less space fails with EINVAL.
RECORD_BYTES: Final = 16 * 1024
_ESCAPED: Final = re.compile(rb"\\x([0-9a-f]{2})")


class Record(NamedTuple):
    """`priority,sequence,time_us,flags[,caller=..];text`, then lines of ` KEY=value`, which are not
    kept.
    """

    priority: int
    sequence: int
    time_us: int
    text: bytes


def parse(raw: bytes) -> Record | None:
    """One record, or None where it is none. Bytes below 0x20, above 0x7e and `\\` come as \\xNN."""
    header, _, body = raw.partition(b";")
    text = body.partition(b"\n")[0]
    if b"\\x" in text:
        text = _ESCAPED.sub(lambda match: bytes((int(match[1], 16),)), text)
    try:
        priority, sequence, time_us = header.split(b",", 3)[:3]
        return Record(int(priority), int(sequence), int(time_us), text)
    except ValueError:
        return None


class KmsgReader:
    """Follows /dev/kmsg. One read gives one record; EPIPE says that the next ones were overwritten
    before we came.
    """

    name = "/dev/kmsg"
    settles_ns = 0

    def __init__(self, descriptor: int, to_time_ns: Callable[[int], int]) -> None:
        self._descriptor = descriptor
        self._to_time_ns = to_time_ns
        self._next_sequence: int | None = None
        self._last_time_ns: int | None = None
        self._gaps: list[Gap] = []

    @classmethod
    def open(cls, path: Path, to_time_ns: Callable[[int], int]) -> "KmsgReader":
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise SourceUnavailable(f"cannot open {path}: {error.strerror}") from None
        if not stat.S_ISCHR(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise SourceUnavailable(f"{path} is not a device")
        return cls(descriptor, to_time_ns)

    def fileno(self) -> int:
        return self._descriptor

    def read_lines(self, limit: int) -> list[LogLine]:
        lines: list[LogLine] = []
        while len(lines) < limit:
            try:
                raw = os.read(self._descriptor, RECORD_BYTES)
            except BlockingIOError:
                break
            except OSError as error:
                if error.errno == errno.EPIPE:
                    # The kernel has moved us to the oldest record it has; its sequence number tells
                    # how many are lost.
                    continue
                raise SourceUnavailable(f"cannot read {self.name}: {error.strerror}") from None
            if not raw:
                break
            record = parse(raw)
            if record is not None:
                self._take(record, lines)
        return lines

    def take_gaps(self, now_ns: int) -> list[Gap]:  # noqa: ARG002 - the records carry their own times
        gaps, self._gaps = self._gaps, []
        return gaps

    def close(self) -> None:
        os.close(self._descriptor)

    def _take(self, record: Record, lines: list[LogLine]) -> None:
        time_ns = self._to_time_ns(record.time_us * NS_PER_US)
        if self._next_sequence is not None and record.sequence > self._next_sequence:
            self._lose(record.sequence - self._next_sequence, time_ns)
        self._next_sequence = record.sequence + 1
        self._last_time_ns = time_ns
        severity, facility = record.priority & 7, record.priority >> 3 & 0x7FFF
        # The kernel gives facility 0 to no other writer: what is written to the device gets
        # another.
        text = clean_line(record.text.rstrip(b"\n"))
        lines.append(LogLine(time_ns, record.sequence, severity, facility, facility == 0, text))

    def _lose(self, lost: int, until_ns: int) -> None:
        from_ns = until_ns if self._last_time_ns is None else min(self._last_time_ns, until_ns)
        for table in ("events", "log"):
            self._gaps.append(
                Gap(
                    table, from_ns, until_ns, "kernel log overwritten before it was read", lost=lost
                )
            )
