"""From the inbox into the tables: what was acknowledged becomes rows. No batch is lost by a kill, nor by two collectors at once.

The rows are durable before the inbox files they came from go. Who is killed in between leaves both, and the rows come a second
time; who reads takes each once. A collector takes its own files, and those of others only when they are so old that their owner
must be dead.
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
from necroscope.fleet.table_files import by_day, write_file
from necroscope.model.units import NS_PER_S

ABANDONED_NS: Final = 60 * NS_PER_S
# What is decoded at once: about twenty times as much in memory.
_ROUND_BYTES: Final = 4 << 20
# What was accepted stays acceptable, also by a collector that was started with less.
_ACCEPTED_ONCE: Final = Limits(
    inflated_bytes=1 << 30, marks=1 << 30, labels=1 << 20, label_bytes=1 << 20, rows=1 << 30, days=1 << 20
)

Place = tuple[str, date, str]


@dataclass(slots=True)
class Compacted:
    """What a compaction did. `refused` are the paths of what could not be read any more, kept aside."""

    files: int = 0
    batches: int = 0
    rows: Counter[str] = field(default_factory=Counter)
    refused: list[str] = field(default_factory=list)


class Compactor:
    def __init__(self, lake: Lake, collector: str, clock_ns: Callable[[], int]) -> None:
        self._lake = lake
        self._collector = collector
        self._clock_ns = clock_ns

    def compact(self) -> Compacted:
        """All files of the inbox that are ours to take, in rounds that fit into memory."""
        done = Compacted()
        for round_files in self._rounds(self._ours()):
            self._compact_round(round_files, done)
        return done

    def _ours(self) -> list[str]:
        now_ns = self._clock_ns()
        origins = {path: origin_of(path) for path in self._lake.list(INBOX)}
        return [
            path
            for path, origin in origins.items()
            if origin is not None and (origin[1] == self._collector or now_ns - origin[0] > ABANDONED_NS)
        ]

    def _rounds(self, paths: list[str]) -> Iterator[dict[str, bytes]]:
        files: dict[str, bytes] = {}
        size_bytes = 0
        for path in paths:
            try:
                files[path] = self._lake.read(path)
            except NotInLake:
                continue  # another collector has taken it
            size_bytes += len(files[path])
            if size_bytes > _ROUND_BYTES:
                yield files
                files, size_bytes = {}, 0
        if files:
            yield files

    def _compact_round(self, files: dict[str, bytes], done: Compacted) -> None:
        found: defaultdict[Place, list[pa.Table]] = defaultdict(list)
        for data in files.values():
            for receipt in self._receipts(data, done):
                self._take(receipt, found, done)
        for (table, day, cluster), parts in sorted(found.items(), key=lambda item: item[0]):
            rows = pa.concat_tables(parts)
            done.rows[table] += rows.num_rows
            write_file(self._lake, table, day, cluster, rows, self._collector, self._clock_ns())
        for path in files:
            self._lake.delete(path)
        done.files += len(files)

    def _receipts(self, data: bytes, done: Compacted) -> Iterator[Receipt]:
        try:
            yield from unpack(data)
        except CorruptData:
            self._keep_aside(data, done)

    def _take(self, receipt: Receipt, found: dict[Place, list[pa.Table]], done: Compacted) -> None:
        try:
            tables = rows_of(decode(receipt.body, _ACCEPTED_ONCE), receipt.cluster, receipt.received_ns, receipt.sent_ns)
        except (BadBatch, TooLarge):
            self._keep_aside(receipt.body, done)
            return
        done.batches += 1
        for table, rows in tables.items():
            for day, part in by_day(rows):
                found[table, day, receipt.cluster].append(part)

    def _keep_aside(self, data: bytes, done: Compacted) -> None:
        """Named by its content: the same thing refused twice is one file."""
        path = f"refused/{len(data)}-{zlib.crc32(data):08x}"
        self._lake.put(path, data)
        done.refused.append(path)
