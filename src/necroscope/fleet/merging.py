"""Sixteen small files of a table become one, and a day that has ended becomes few: readers open
files, not rows.

The merged file is durable before the small ones go, and those go a while later, so that a question
that has listed them can still open them. A kill or a second collector in between leaves rows in two
files; who reads takes each once.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import date
from typing import Final

from necroscope.fleet.lake import Lake, day_of
from necroscope.fleet.lake_files import NotInLake
from necroscope.fleet.lake_tables import DAY_NS, LAKE_TABLES
from necroscope.fleet.table_files import DamagedFile, TableFile, read_files, write_file
from necroscope.model.units import NS_PER_S

TOGETHER: Final = 16
MOST_ROWS: Final = 1 << 20
# Reports are kilobytes each, and paths hundreds of bytes: what is merged is in memory as a whole.
_MOST_ROWS_OF: Final = {"incidents": 1 << 14, "stack_minutes": 1 << 18}
# With all texts written out, however much they repeat: what was small as a dictionary may not be so
# in the merged file.
_MOST_BYTES: Final = 256 << 20
ABANDONED_NS: Final = 600 * NS_PER_S
# A day that ended this long ago gets no more than latecomers.
_SETTLED_NS: Final = 3600 * NS_PER_S
_LAST_DAYS: Final = 2
GRACE_NS: Final = 60 * NS_PER_S


def plan(files: Iterable[TableFile], now_ns: int) -> list[list[TableFile]]:
    """Which files to merge: sixteen of about the same size, so that a row is written again once per
    factor of sixteen.
    """
    places: defaultdict[tuple[str, date, str], list[TableFile]] = defaultdict(list)
    for file in files:
        if file.rows < most_rows(file.table) // 2:
            places[file.table, file.day, file.cluster].append(file)
    groups = []
    for (table, day, _), found in sorted(places.items()):
        has_ended = (
            day < day_of(now_ns - DAY_NS)
            and max(file.written_ns for file in found) < now_ns - _SETTLED_NS
        )
        groups += (
            [_fitting(found, table)]
            if has_ended
            else [_fitting(tier, table) for tier in _tiers(found)]
        )
    return [group for group in groups if len(group) > 1]


def most_rows(table: str) -> int:
    return _MOST_ROWS_OF.get(table, MOST_ROWS)


def _tiers(files: list[TableFile]) -> list[list[TableFile]]:
    tiers: defaultdict[int, list[TableFile]] = defaultdict(list)
    for file in files:
        tiers[file.rows.bit_length() // 4].append(file)
    return [tier for tier in tiers.values() if len(tier) >= TOGETHER]


def _fitting(files: list[TableFile], table: str) -> list[TableFile]:
    """As many, the smallest first, as one file may hold."""
    chosen: list[TableFile] = []
    rows = 0
    for file in sorted(files, key=lambda file: (file.rows, file.path)):
        rows += file.rows
        if rows > most_rows(table):
            break
        chosen.append(file)
    return chosen


class Merger:
    def __init__(self, lake: Lake, collector: str, clock_ns: Callable[[], int]) -> None:
        self._lake = lake
        self._collector = collector
        self._clock_ns = clock_ns
        # Merged already, and when they may go.
        self._retired_ns: dict[str, int] = {}
        self._damaged: set[str] = set()
        # As large as they may be, though they have few rows.
        self._full: set[str] = set()

    def merge(self, *, is_all_days: bool = True) -> int:
        """Merge what is ready, of all days or only of the last, which change most; answers how many
        files became fewer.

        DamagedFile once for each that is; the next merge goes on without it.
        """
        self.remove_retired()
        from_ns = None if is_all_days else self._clock_ns() - _LAST_DAYS * DAY_NS
        count = 0
        for table in LAKE_TABLES:
            for group in plan(self._ours(table, from_ns), self._clock_ns()):
                count += self._merge_group(group)
        return count

    def remove_retired(self, *, at_once: bool = False) -> None:
        now_ns = self._clock_ns()
        for path in [
            path for path, due_ns in self._retired_ns.items() if at_once or due_ns <= now_ns
        ]:
            self._lake.delete(path)
            del self._retired_ns[path]

    def _ours(self, table: str, from_ns: int | None) -> list[TableFile]:
        now_ns = self._clock_ns()
        found = [TableFile.of(path) for path in self._lake.table_files(table, from_ns)]
        passed = self._retired_ns.keys() | self._damaged | self._full
        return [
            file
            for file in found
            if file is not None
            and file.path not in passed
            and (file.writer == self._collector or now_ns - file.written_ns > ABANDONED_NS)
        ]

    def _merge_group(self, group: list[TableFile]) -> int:
        """Those that fit into memory; the others are the next merge's."""
        first, paths = group[0], [file.path for file in group]
        try:
            found = read_files(self._lake, first.table, paths, _MOST_BYTES)
        except NotInLake:
            return 0  # another collector has merged them
        except DamagedFile as error:
            self._damaged.add(error.path)
            raise
        if len(found.paths) < 2:
            self._full.update(found.large)
            return 0
        write_file(
            self._lake,
            first.table,
            first.day,
            first.cluster,
            found.rows,
            self._collector,
            self._clock_ns(),
        )
        due_ns = self._clock_ns() + GRACE_NS
        self._retired_ns |= dict.fromkeys(found.paths, due_ns)
        return len(found.paths)
