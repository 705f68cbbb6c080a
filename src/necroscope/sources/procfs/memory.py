"""The `memory` row: what /proc/vmstat counted since the row before, what /proc/meminfo and the file
system caches hold now.
"""

from operator import sub
from pathlib import Path
from typing import Final

from necroscope.model.reading import Gap, Moment, Reading, Source
from necroscope.sources.kept_file import KeptFile
from necroscope.sources.procfs import filesystem_caches, meminfo, vmstat

Values = list[int | None]
_LONGEST_LINE_BYTES: Final = 128


class Memory(Source):
    """One row a tick."""

    name = "memory"
    tables: tuple[str, ...] = ("memory",)

    def __init__(self, root: Path) -> None:
        self._vmstat_file = KeptFile(root / "proc/vmstat")
        self._meminfo_file = KeptFile(root / "proc/meminfo")
        self._dentry_state_file = KeptFile(root / "proc/sys/fs/dentry-state")
        self._inode_nr_file = KeptFile(root / "proc/sys/fs/inode-nr")
        self._vmstat = vmstat.Vmstat()
        self._meminfo = meminfo.Meminfo()
        self._before: Values = []
        self._read_at: Moment | None = None

    def read(self, now: Moment) -> Reading:
        events = self._vmstat_file.parse(
            self._vmstat.parse, longest_record_bytes=_LONGEST_LINE_BYTES
        )
        amounts = self._meminfo_file.parse(self._meminfo.parse, record=True)
        dentries = self._dentry_state_file.parse(filesystem_caches.parse_dentry_state, record=True)
        inodes = self._inode_nr_file.parse(filesystem_caches.parse_inode_nr, record=True)
        reading = Reading()
        if self._read_at is None:
            reading.gaps += _missing(events, amounts, dentries, now)
        else:
            rises = _rises(events, self._before)
            if rises is not None:
                elapsed_ns = now.monotonic_ns - self._read_at.monotonic_ns
                reading.rows["memory"] = [
                    (now.time_ns, elapsed_ns, *rises, *amounts, *dentries, inodes)
                ]
        self._before, self._read_at = events, now
        return reading

    def close(self) -> None:
        for file in (
            self._vmstat_file,
            self._meminfo_file,
            self._dentry_state_file,
            self._inode_nr_file,
        ):
            file.close()


def _rises(now: Values, before: Values) -> Values | None:
    """None if a counter fell: then they were counted anew and there is nothing to compare with."""
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
