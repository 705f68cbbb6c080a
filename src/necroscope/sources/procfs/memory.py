"""The `memory` row: what /proc/vmstat counted since the row before, what /proc/meminfo and the file
system caches hold now.
"""

from pathlib import Path
from typing import Final

from necroscope.model.reading import Gap, Moment, Reading, Source
from necroscope.sources.kept_file import KeptFile
from necroscope.sources.procfs import filesystem_caches, meminfo, vmstat
from necroscope.sources.procfs.named_file import NamedFile, Values

_LONGEST_LINE_BYTES: Final = 128


class Memory(Source):
    """One row a tick."""

    name = "memory"
    tables: tuple[str, ...] = ("memory",)

    def __init__(self, root: Path) -> None:
        events, amounts = vmstat.Vmstat(), meminfo.Meminfo()
        self._vmstat = NamedFile(
            root / "proc/vmstat", events.numbers, events.columns, _LONGEST_LINE_BYTES
        )
        self._meminfo = NamedFile(root / "proc/meminfo", amounts.numbers, amounts.columns)
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
        elif rises is not None and not any(rise is not None and rise < 0 for rise in rises):
            elapsed_ns = now.monotonic_ns - self._read_at.monotonic_ns
            reading.rows["memory"] = [
                (now.time_ns, elapsed_ns, *rises, *amounts, *dentries, inodes)
            ]
        self._read_at = now
        return reading

    def close(self) -> None:
        for file in (
            self._vmstat,
            self._meminfo,
            self._dentry_state_file,
            self._inode_nr_file,
        ):
            file.close()


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
