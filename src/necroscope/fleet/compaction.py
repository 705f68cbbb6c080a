"""From the inbox into the tables: what was acknowledged becomes rows. No batch is lost by a kill,
nor by two collectors at once.

The rows are durable before the inbox files they came from go. Who is killed in between leaves both,
and the rows come a second time; who reads takes each once. A collector takes its own files, and
those of others only when they are so old that their owner must be dead.
"""

import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date
from typing import Final

import pyarrow as pa

from necroscope.errors import CorruptData
from necroscope.fleet.batch_rows import rows_of
from necroscope.fleet.inbox import INBOX, Receipt, origin_of, unpack
from necroscope.fleet.lake import Lake
from necroscope.fleet.lake_files import NotInLake
from necroscope.fleet.limits import Limits
from necroscope.fleet.protocol import BadBatch, TooLarge, decode
from necroscope.fleet.round_marks import RoundMarks
from necroscope.fleet.table_files import by_day, write_file
from necroscope.model.units import NS_PER_S

ABANDONED_NS: Final = 60 * NS_PER_S
_ROUND_FILES: Final = 64
# Of rows in memory, whatever they were as bodies: a thousandth of it, for a hostile sender.
_ROUND_BYTES: Final = 64 << 20
# What was accepted stays acceptable, also by a collector that was started with less.
_ACCEPTED_ONCE: Final = Limits(
    inflated_bytes=1 << 30,
    marks=1 << 30,
    labels=1 << 20,
    label_bytes=1 << 20,
    label_facts=1 << 30,
    incidents=1 << 30,
    rows=1 << 30,
    days=1 << 20,
)

Place = tuple[str, date, str]


@dataclass(slots=True)
class CompactionResult:
    """What a compaction did. `refused` are the paths of what could not be read any more, kept
    aside.
    """

    files: int = 0
    batches: int = 0
    rows: Counter[str] = field(default_factory=Counter)
    refused: list[str] = field(default_factory=list)


class Compactor:
    def __init__(self, lake: Lake, collector: str, clock_ns: Callable[[], int]) -> None:
        self._lake = lake
        self._collector = collector
        self._clock_ns = clock_ns
        self._marks = RoundMarks(lake, collector, clock_ns)

    def compact(self) -> CompactionResult:
        """All files of the inbox that are ours to take, in rounds that fit into memory."""
        done = CompactionResult()
        inbox = self._lake.list(INBOX)
        unfinished = self._marks.unfinished(inbox)
        ours = self._ours(inbox)
        new = [path for path in ours if path not in unfinished.begun]
        for first in range(0, len(new), _ROUND_FILES):
            self._compact_round(new[first : first + _ROUND_FILES], done)
        for path in ours:
            if path in unfinished.fatal:
                self._refuse(path, done)
            elif path in unfinished.begun:
                self._compact_round([path], done, is_second_try=True)
        return done

    def _ours(self, inbox: list[str]) -> list[str]:
        now_ns = self._clock_ns()
        origins = {path: origin_of(path) for path in inbox}
        return [
            path
            for path, origin in origins.items()
            if origin is not None
            and (origin[1] == self._collector or now_ns - origin[0] > ABANDONED_NS)
        ]

    def _compact_round(
        self, paths: list[str], done: CompactionResult, *, is_second_try: bool = False
    ) -> None:
        with self._marks.round(paths, is_second_try=is_second_try):
            taken = []
            found: defaultdict[Place, list[pa.Table]] = defaultdict(list)
            size_bytes = 0
            for path in paths:
                try:
                    data = self._lake.read(path)
                except NotInLake:
                    continue  # another collector has taken it
                for receipt in self._receipts(data, done):
                    size_bytes += self._take(receipt, found, done)
                    if size_bytes > _ROUND_BYTES:
                        self._write(found, done)
                        size_bytes = 0
                taken.append(path)
            self._write(found, done)
            for path in taken:
                self._lake.delete(path)
            done.files += len(taken)

    def _receipts(self, data: bytes, done: CompactionResult) -> Iterator[Receipt]:
        try:
            yield from unpack(data)
        except CorruptData:
            self._keep_aside(data, done)

    def _take(
        self, receipt: Receipt, found: dict[Place, list[pa.Table]], done: CompactionResult
    ) -> int:
        """How many bytes its rows are."""
        try:
            tables = rows_of(
                decode(receipt.body, _ACCEPTED_ONCE),
                receipt.cluster,
                receipt.received_ns,
                receipt.sent_ns,
                receipt.clock,
            )
        except (BadBatch, TooLarge):
            self._keep_aside(receipt.body, done)
            return 0
        done.batches += 1
        for table, rows in tables.items():
            for day, part in by_day(rows):
                found[table, day, receipt.cluster].append(part)
        return sum(rows.nbytes for rows in tables.values())

    def _write(self, found: dict[Place, list[pa.Table]], done: CompactionResult) -> None:
        for (table, day, cluster), parts in sorted(found.items(), key=lambda item: item[0]):
            rows = pa.concat_tables(parts)
            done.rows[table] += rows.num_rows
            write_file(self._lake, table, day, cluster, rows, self._collector, self._clock_ns())
        found.clear()

    def _refuse(self, path: str, done: CompactionResult) -> None:
        try:
            data = self._lake.read(path)
        except NotInLake:
            return
        self._keep_aside(data, done)
        self._lake.delete(path)

    def _keep_aside(self, data: bytes, done: CompactionResult) -> None:
        """Named by its content: the same thing refused twice is one file."""
        path = f"refused/{len(data)}-{zlib.crc32(data):08x}"
        self._lake.put(path, data)
        done.refused.append(path)
