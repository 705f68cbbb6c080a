"""The kernel's lines from systemd's journal: `journalctl -k -f -o json` as a child, read without
waiting.
"""

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from necroscope.errors import SourceUnavailable
from necroscope.model.child import Child, read_piece
from necroscope.model.reading import Gap
from necroscope.model.units import NS_PER_S, NS_PER_US
from necroscope.sources.kernel_log.byte_lines import ByteLines
from necroscope.sources.kernel_log.line import LogLine, clean_line

HISTORY_LINES: Final = 2000
RETRY_NS: Final = 10 * NS_PER_S
_USER_FACILITY: Final = 1
_DIRECTORIES: Final = ("var/log/journal", "run/log/journal")


def parse(raw: bytes, to_time_ns: Callable[[int], int] | None) -> LogLine | None:
    """One entry, or None where it is none. A message that is not UTF-8 comes as a list of bytes,
    one that is too long as null. Without `to_time_ns` the boot is over, and its stamps say nothing.

    The kernel's own stamp stands for the sequence number, which the journal does not keep: it is
    the same whenever the entry is read, while the time that we make of it depends on how the clocks
    are measured then.
    """
    try:
        entry = json.loads(raw)
        message = entry["MESSAGE"]
        stamp = entry.get("_SOURCE_MONOTONIC_TIMESTAMP")
        stamp_us = int(stamp) if stamp and to_time_ns is not None else None
        time_ns = (
            int(entry["__REALTIME_TIMESTAMP"]) * NS_PER_US
            if stamp_us is None or to_time_ns is None
            else to_time_ns(stamp_us * NS_PER_US)
        )
        severity = int(entry.get("PRIORITY", 6)) & 7
        facility = int(entry.get("SYSLOG_FACILITY", _USER_FACILITY)) & 0x7FFF
        text = (
            bytes(message)
            if isinstance(message, list)
            else str(message or "").encode("utf-8", "backslashreplace")
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    if not text:
        return None
    # The journal takes in what others write to /dev/kmsg too; their facility tells them apart.
    by_kernel = facility == 0 and entry.get("_TRANSPORT") == "kernel"
    return LogLine(time_ns, stamp_us, severity, facility, by_kernel, clean_line(text.rstrip(b"\n")))


def find_directory(root: Path) -> Path | None:
    """The one that holds a journal: that which is kept, else that of this boot."""
    return next(
        (root / name for name in _DIRECTORIES if any((root / name).glob("*/*.journal"))), None
    )


class JournalctlReader:
    """A journalctl that follows the kernel's lines. When it ends, it is started again after a
    pause.
    """

    name = "journalctl"
    # It finds and prints its history while we already read, on a slow disk for longer than this.
    settles_ns = 5 * NS_PER_S

    def __init__(
        self,
        command: list[str],
        to_time_ns: Callable[[int], int],
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._command = command
        self._to_time_ns = to_time_ns
        self._clock = clock
        self._lines = ByteLines()
        self._gaps: list[str] = []
        self._retry_ns = 0
        self._child: Child | None = self._start(HISTORY_LINES)

    @classmethod
    def open(cls, root: Path, to_time_ns: Callable[[int], int]) -> "JournalctlReader":
        program = shutil.which("journalctl")
        directory = find_directory(root)
        if program is None or directory is None:
            raise SourceUnavailable("no journalctl" if program is None else "no journal")
        # Ours ends with us even when we are killed: nothing may be left behind.
        guard = shutil.which("setpriv")
        command = [
            *([guard, "--pdeathsig", "KILL", "--"] if guard else []),
            program,
            "--dmesg",
            "--follow",
            "--output=json",
        ]
        return cls(
            [*command, *([] if root == Path("/") else ["--directory", str(directory)])], to_time_ns
        )

    def fileno(self) -> int | None:
        return self._child.stdout if self._child is not None else None

    def read_lines(self, limit: int) -> list[LogLine]:
        if self._child is None:
            self._restart()
        lines: list[LogLine] = []
        while len(lines) < limit:
            piece = self._read_piece()
            if not piece:
                break
            for raw in self._lines.feed(piece):
                line = parse(raw, self._to_time_ns)
                if line is not None:
                    lines.append(line)
        if not lines and self._child is None:
            raise SourceUnavailable("journalctl ended")
        return lines

    def take_gaps(self, now_ns: int) -> list[Gap]:
        gaps = [
            Gap(table, now_ns, now_ns, cause) for cause in self._gaps for table in ("events", "log")
        ]
        self._gaps.clear()
        return gaps

    def close(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.end(0.0)

    def _start(self, history: int) -> Child:
        try:
            return Child([*self._command, f"--lines={history}"], stdout=True)
        except OSError as error:
            raise SourceUnavailable(f"cannot start journalctl: {error.strerror}") from None

    def _restart(self) -> None:
        if self._clock() < self._retry_ns:
            raise SourceUnavailable("journalctl ended")
        self._retry_ns = self._clock() + RETRY_NS
        self._lines.clear()
        self._child = self._start(0)
        self._gaps.append("journalctl ended and was started again")

    def _read_piece(self) -> bytes:
        piece = read_piece(self._child.stdout) if self._child is not None else None
        if piece == b"":
            self.close()
            self._retry_ns = self._clock() + RETRY_NS
        return piece or b""
