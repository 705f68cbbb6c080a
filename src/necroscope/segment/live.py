"""A live segment as a reader sees it: the journal is scanned once, then only what came since;
blocks are read when needed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

import pyarrow as pa

from necroscope.errors import CorruptData
from necroscope.model.reading import Gap
from necroscope.model.tables import Table
from necroscope.segment.arrow import batch_of, gaps_of
from necroscope.segment.block import BlockHeader
from necroscope.segment.journal_reader import JournalReader, read_block
from necroscope.segment.recording import segment_bytes, segment_start_ns
from necroscope.segment.sealed_reader import SegmentGoneError
from necroscope.segment.versions import LAYOUTS, check_version
from necroscope.segment.window import Window, check_size, overlaps, rows_within

# A process that follows a recording reads the same minutes of counters again and again. Their
# blocks are small and stay decoded; blocks of samples do not.
_KEPT_BLOCK_BYTES: Final = 32 << 10
_KEPT_BYTES: Final = 8 << 20


@dataclass(frozen=True, slots=True)
class _Place:
    header: BlockHeader
    offset: int


class LiveSegment:
    """Blocks that contradict themselves are left out and become a gap, as do stretches of the
    journal without a right block.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.bytes_read = 0
        self._damage: dict[int, Gap] = {}
        self._places: dict[str, list[_Place]] = {}
        self._kept: dict[int, tuple[pa.RecordBatch, int]] = {}
        self._kept_bytes = 0
        self._journal = JournalReader(path, segment_start_ns(path.name))
        self._size_bytes = 0
        self.refresh()

    def refresh(self) -> None:
        """Take in what was written since; a journal that became shorter is read again."""
        try:
            size_bytes = self._journal.path.stat().st_size
            if size_bytes < self._size_bytes:
                self._places, self._damage, self._kept, self._kept_bytes = {}, {}, {}, 0
                self._journal = JournalReader(self.path, segment_start_ns(self.path.name))
            if size_bytes != self._size_bytes:
                for block in self._journal.advance():
                    check_version(block.header.schema)
                    self._places.setdefault(block.header.name, []).append(
                        _Place(block.header, block.offset)
                    )
                self.bytes_read += max(size_bytes - self._size_bytes, 0)
            self._size_bytes = size_bytes
        except OSError as error:
            # A recorder that died between making the directory and the journal leaves an empty one:
            # no rows, no gap.
            if not self.path.is_dir():
                raise SegmentGoneError(f"segment {self.path.name} is gone") from None
            if not isinstance(error, FileNotFoundError):
                self._damage[-1] = Gap(
                    "*", *self.span, f"segment {self.path.name}: {error.strerror}"
                )

    @property
    def schema(self) -> int:
        """Of the journal's blocks; the header has it too, but may be what is damaged."""
        return next((places[0].header.schema for places in self._places.values()), max(LAYOUTS))

    @property
    def node(self) -> str:
        return self._journal.header.node if self._journal.header else ""

    @property
    def cpus(self) -> int | None:
        return self._journal.header.cpus if self._journal.header else None

    @property
    def idle_samples(self) -> int:
        return self._journal.idle_samples

    @property
    def span(self) -> tuple[int, int]:
        start_ns = (
            self._journal.header.from_ns
            if self._journal.header
            else segment_start_ns(self.path.name)
        )
        return start_ns, max(start_ns, self._journal.last_ns)

    @property
    def reach(self) -> tuple[int, int]:
        from_ns, to_ns = self.span
        starts = (
            place.header.from_ns
            for places in self._places.values()
            for place in places
            if place.header.to_ns
        )
        return min(from_ns, min(starts, default=from_ns)), to_ns

    @property
    def tables(self) -> dict[str, int]:
        return {
            name: sum(place.header.rows for place in places)
            for name, places in self._places.items()
        }

    @property
    def bytes(self) -> int:
        return segment_bytes(self.path)

    def gaps(self) -> list[Gap]:
        table = LAYOUTS[self.schema]["gaps"]
        recorded = [
            gap
            for rows in self.read(table, None, [c.name for c in table.columns])
            for gap in gaps_of(rows)
        ]
        return [*recorded, *self._journal.gaps, *self._damage.values()]

    def read(self, table: Table, window: Window, columns: Sequence[str]) -> Iterator[pa.Table]:
        """The rows in the window, by block."""
        places = [
            p
            for p in self._places.get(table.name, ())
            if overlaps(window, p.header.from_ns, p.header.to_ns)
        ]
        if not places:
            return
        try:
            file = self._journal.path.open("rb")
        except OSError:
            raise SegmentGoneError(f"segment {self.path.name} is gone") from None
        held_bytes = 0
        with file:
            for place in places:
                held_bytes += place.header.raw_bytes
                try:
                    check_size(held_bytes)
                    batch = self._batch(table, file, place).select(list(columns))
                except CorruptData as error:
                    header = place.header
                    self._damage[place.offset] = Gap(
                        header.name, header.from_ns, header.to_ns, error.facts, lost=header.rows
                    )
                else:
                    yield rows_within(pa.Table.from_batches([batch]), window)

    def _batch(self, table: Table, file: BinaryIO, place: _Place) -> pa.RecordBatch:
        kept = self._kept.get(place.offset)
        if kept is not None:
            return kept[0]
        self.bytes_read += place.header.block_bytes
        block = read_block(file, place.offset, place.offset + place.header.block_bytes)
        if block is None:
            raise CorruptData("a block changed since it was first read")
        batch = batch_of(table, block)
        size_bytes = place.header.raw_bytes
        if size_bytes <= _KEPT_BLOCK_BYTES:
            self._kept[place.offset] = batch, size_bytes
            self._kept_bytes += size_bytes
        while self._kept_bytes > _KEPT_BYTES:
            # What follows a recording asks for its end: the oldest is not asked for again.
            _, oldest_bytes = self._kept.pop(min(self._kept))
            self._kept_bytes -= oldest_bytes
        return batch
