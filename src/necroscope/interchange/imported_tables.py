"""Reports and counters of an import, apart from its samples: mpstat, sar and copies of /proc of one
machine, as rows by table.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from necroscope.errors import NecroscopeError
from necroscope.interchange.detect import FileKind
from necroscope.interchange.inputs import Input
from necroscope.interchange.mpstat import read_mpstat
from necroscope.interchange.proc_files import STAT, Snapshot, read_snapshots
from necroscope.interchange.proc_series import ProcSeries
from necroscope.interchange.read_tables import ReadTables
from necroscope.interchange.sar import read_sar
from necroscope.model.reading import Rows
from necroscope.model.units import NS_PER_MS

_TICK_NS: Final = 10 * NS_PER_MS
_UNDATED: Final = "says no time: it is dated by when the file was written"


def read_tables(
    inputs: Sequence[Input], utc_offset_s: int, window: tuple[int, int]
) -> list[tuple[Input, ReadTables]]:
    """One entry for each file that holds any; those of /proc are one series, in order of time."""
    found: list[tuple[Input, ReadTables]] = []
    for given in inputs:
        if given.kind in (FileKind.MPSTAT, FileKind.SAR):
            read = read_mpstat if given.kind is FileKind.MPSTAT else read_sar
            try:
                found.append((given, read(given.path, utc_offset_s, *window)))
            except NecroscopeError as error:
                if given.folder is None:
                    raise
                given.fault = error.facts
    return [*found, *_read_series(inputs, utc_offset_s, window)]


def _read_series(
    inputs: Sequence[Input], utc_offset_s: int, window: tuple[int, int]
) -> list[tuple[Input, ReadTables]]:
    copies = [given for given in inputs if given.kind is FileKind.PROC]
    if not copies:
        return []
    series = ProcSeries()
    for given in sorted(copies, key=lambda given: given.written_ns):
        series.count_directories(given.directories)
        damaged = 0
        for snapshot, time_ns in _dated(given, utc_offset_s):
            try:
                series.add(snapshot, time_ns)
            except (ValueError, KeyError, IndexError):
                damaged += 1
        if damaged:
            given.notes.append(f"{damaged} damaged copies of /proc files were left out")
    series.finish()
    rows = {table: _within(own, window) for table, own in series.rows.items()}
    notes = list(dict.fromkeys(series.notes))
    if series.left_out:
        notes.append(f"{series.left_out} rows were left out: --from and --to choose others")
    return [(copies[0], ReadTables(rows={k: v for k, v in rows.items() if v}, notes=notes))]


def _within(rows: Rows, window: tuple[int, int]) -> Rows:
    kept = [row for row in rows if isinstance(row[0], int) and window[0] <= row[0] < window[1]]
    return sorted(kept, key=lambda row: row[0] if isinstance(row[0], int) else 0)


def _dated(given: Input, utc_offset_s: int) -> Iterable[tuple[Snapshot, int]]:
    """Copies without a date end when the file was written; the ticks of their cores say how far
    apart they are.
    """
    last_ns = 0
    is_undated = False
    for snapshot in read_snapshots(given.path, utc_offset_s):
        if snapshot.time_ns is None:
            is_undated = True
            last_ns = _up_ns(snapshot) or last_ns
    if is_undated:
        given.notes.append(_UNDATED)
    up_ns = last_ns
    for snapshot in read_snapshots(given.path, utc_offset_s):
        if snapshot.time_ns is not None:
            yield snapshot, snapshot.time_ns
            continue
        up_ns = _up_ns(snapshot) or up_ns
        yield snapshot, max(0, given.written_ns - (last_ns - up_ns))


def _up_ns(snapshot: Snapshot) -> int | None:
    """How long the cores have counted: the longest of them was never offline."""
    if snapshot.kind != STAT:
        return None
    cores = [line.split()[1:9] for line in snapshot.lines if line[:4] not in (b"cpu ", b"intr")]
    sums = [
        sum(map(int, words)) for words in cores if len(words) == 8 and b"".join(words).isdigit()
    ]
    return max(sums, default=0) * _TICK_NS or None
