"""The `memory` row: what /proc/vmstat counted since the row before, what /proc/meminfo and the file
system caches hold now.
"""

from collections.abc import Callable
from operator import sub
from pathlib import Path
from typing import Final

from necroscope.model.reading import Gap, Moment, Reading, Source
from necroscope.sources.kept_file import KeptFile
from necroscope.sources.kept_numbers import KeptNumbers
from necroscope.sources.procfs import filesystem_caches, meminfo, vmstat
from necroscope.sources.procfs.named_numbers import NamedNumbers

Values = list[int | None]
_LONGEST_LINE_BYTES: Final = 128


class _NamedFile:
    """A file of `name value` lines, and what columns its numbers make; `longest_bytes` of a line,
    0 if the kernel writes it as a single record.
    """

    def __init__(
        self,
        path: Path,
        names: NamedNumbers,
        columns: Callable[[Values], Values],
        longest_bytes: int = 0,
    ) -> None:
        self.file = KeptFile(path)
        self._names = names
        self._columns = columns
        self._longest_bytes = longest_bytes
        self._numbers = KeptNumbers(self.file, longest_record_bytes=longest_bytes)
        # Of counters, at the last read; None: they are in `_numbers`.
        self._before: Values | None = []

    def read(self) -> Values:
        """The columns now."""
        if not self._numbers.take():
            return self._parse_file()
        return self._columns(self._names.in_order(self._numbers.values))

    def rises(self) -> Values | None:
        """By how much they rose since the last read; None if there is nothing to compare with, or a
        counter fell: then they were reset.
        """
        if self._numbers.take():
            self._before, numbers = None, self._numbers.rises
            return self._columns(self._names.in_order(numbers)) if min(numbers) >= 0 else None
        before = self.values()
        self._before = self._parse_file()
        return _rises(self._before, before) if before else None

    def values(self) -> Values:
        """The columns at the last read."""
        if self._before is not None:
            return self._before
        return self._columns(self._names.in_order(self._numbers.values))

    def _parse_file(self) -> Values:
        return self.file.parse(
            self._parse,
            record=not self._longest_bytes,
            longest_record_bytes=self._longest_bytes,
        )

    def _parse(self, data: bytes) -> Values:
        values = self._columns(self._names.parse(data))
        self._numbers.learn(data, self._names.value_places)
        return values


class Memory(Source):
    """One row a tick."""

    name = "memory"
    tables: tuple[str, ...] = ("memory",)

    def __init__(self, root: Path) -> None:
        events, amounts = vmstat.Vmstat(), meminfo.Meminfo()
        self._vmstat = _NamedFile(
            root / "proc/vmstat", events.numbers, events.columns, _LONGEST_LINE_BYTES
        )
        self._meminfo = _NamedFile(root / "proc/meminfo", amounts.numbers, amounts.columns)
        self._dentry_state_file = KeptFile(root / "proc/sys/fs/dentry-state")
        self._inode_nr_file = KeptFile(root / "proc/sys/fs/inode-nr")
        self._read_at: Moment | None = None

    def read(self, now: Moment) -> Reading:
        rises, amounts = self._vmstat.rises(), self._meminfo.read()
        dentries = self._dentry_state_file.parse(filesystem_caches.parse_dentry_state, record=True)
        inodes = self._inode_nr_file.parse(filesystem_caches.parse_inode_nr, record=True)
        reading = Reading()
        if self._read_at is None:
            reading.gaps += _missing(self._vmstat.values(), amounts, dentries, now)
        elif rises is not None:
            elapsed_ns = now.monotonic_ns - self._read_at.monotonic_ns
            reading.rows["memory"] = [
                (now.time_ns, elapsed_ns, *rises, *amounts, *dentries, inodes)
            ]
        self._read_at = now
        return reading

    def close(self) -> None:
        for file in (
            self._vmstat.file,
            self._meminfo.file,
            self._dentry_state_file,
            self._inode_nr_file,
        ):
            file.close()


def _rises(now: Values, before: Values) -> Values | None:
    """None if a counter fell: then they were reset and there is nothing to compare with."""
    if None not in now and None not in before:
        rises = list(map(sub, now, before))
        return None if min(rises) < 0 else rises
    rises = [
        None if new is None or old is None else new - old
        for new, old in zip(now, before, strict=True)
    ]
    return None if any(rise is not None and rise < 0 for rise in rises) else rises


def _missing(events: Values, amounts: Values, dentries: Values, now: Moment) -> list[Gap]:
    """One gap for each file that lacks names."""
    files = {
        "/proc/vmstat": (vmstat.COLUMNS, events),
        "/proc/meminfo": (meminfo.COLUMNS, amounts),
        "/proc/sys/fs/dentry-state": (filesystem_caches.COLUMNS, dentries),
    }
    gaps = []
    for path, (columns, values) in files.items():
        lacking = [column for column, value in zip(columns, values, strict=True) if value is None]
        if lacking:
            gaps.append(
                Gap(
                    "memory",
                    now.time_ns,
                    now.time_ns,
                    f"this kernel's {path} has no {', '.join(lacking)}",
                )
            )
    return gaps
