"""A live segment as a reader sees it: the journal is scanned once, then only what came since;
blocks are read when needed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final

import pyarrow as pa

from necroscope.errors import CorruptData
from necroscope.model.reading import Gap
from necroscope.model.tables import Table
from necroscope.segment.arrow import batch_of, empty, gaps_of
from necroscope.segment.block import Block, BlockHeader
from necroscope.segment.journal_reader import JournalReader, read_block
from necroscope.segment.recording import segment_bytes, segment_start_ns
from necroscope.segment.sealed_reader import SegmentGoneError
from necroscope.segment.versions import LAYOUTS, check_version
from necroscope.segment.window import Window, check_size, overlaps, rows_within

# A process that follows a recording reads the same minutes of counters again and again: they stay
# decoded, each table in one piece. Tables of very many rows do not.
_TAIL_BYTES: Final = 4 << 20
_TAILS_BYTES: Final = 16 << 20


@dataclass(frozen=True, slots=True)
class _Place:
    header: BlockHeader
    offset: int


@dataclass(slots=True)
class _Tail:
    """The rows of all blocks of a table from number `first` on, in one piece; `counts` has how many
    rows of each block are in it, `size_bytes` is about what they take.
    """

    first: int
    rows: pa.Table
    counts: list[int] = field(default_factory=list)
    size_bytes: int = 0

    @property
    def end(self) -> int:
        return self.first + len(self.counts)

    def forget_before(self, first: int) -> None:
        """What it held goes when the next rows are laid behind the rest, which copies it."""
        left_out = sum(self.counts[: first - self.first])
        del self.counts[: first - self.first]
        self.first = first
        self.rows = self.rows.slice(left_out)

    def add(self, batches: Sequence[pa.RecordBatch | None]) -> None:
        """None is a block that is damaged."""
        self.counts += [0 if batch is None else batch.num_rows for batch in batches]
        new = [pa.Table.from_batches([batch]) for batch in batches if batch is not None]
        if new:
            self.rows = pa.concat_tables([self.rows, *new]).unify_dictionaries().combine_chunks()


class LiveSegment:
    """Blocks that contradict themselves are left out and become a gap, as do stretches of the
    journal without a right block.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.bytes_read = 0
        self._damage: dict[int, Gap] = {}
        self._places: dict[str, list[_Place]] = {}
        self._rows: dict[str, int] = {}
        self._first_ns: int | None = None
        self._tails: dict[str, _Tail] = {}
        self._journal = JournalReader(path, segment_start_ns(path.name))
        self._size_bytes = 0
        self.refresh()

    def refresh(self) -> None:
        """Take in what was written since; a journal that became shorter is read again."""
        try:
            size_bytes = self._journal.path.stat().st_size
            if size_bytes < self._size_bytes:
                self._places, self._damage, self._rows, self._tails = {}, {}, {}, {}
                self._first_ns = None
                self._journal = JournalReader(self.path, segment_start_ns(self.path.name))
            if size_bytes != self._size_bytes:
                for block in self._journal.advance():
                    check_version(block.header.schema)
                    self._take(block)
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

    def _take(self, block: Block) -> None:
        header = block.header
        self._places.setdefault(header.name, []).append(_Place(header, block.offset))
        self._rows[header.name] = self._rows.get(header.name, 0) + header.rows
        if header.to_ns:
            known_ns = header.from_ns if self._first_ns is None else self._first_ns
            self._first_ns = min(known_ns, header.from_ns)

    @property
    def schema(self) -> int:
        """Of the journal's blocks; the header has it too, but may be what is damaged."""
        return next((places[0].header.schema for places in self._places.values()), max(LAYOUTS))

    @property
    def node(self) -> str:
        return self._journal.header.node if self._journal.header else ""

    @property
    def cpus(self) -> int | None:
        return (self._journal.header.cpus or None) if self._journal.header else None

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
        return from_ns if self._first_ns is None else min(from_ns, self._first_ns), to_ns

    @property
    def tables(self) -> dict[str, int]:
        return dict(self._rows)

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
        """The rows in the window; of a large table by block."""
        places = self._places.get(table.name, [])
        touched = [
            number
            for number, place in enumerate(places)
            if overlaps(window, place.header.from_ns, place.header.to_ns)
        ]
        if not touched:
            return
        try:
            file = self._journal.path.open("rb")
        except OSError:
            raise SegmentGoneError(f"segment {self.path.name} is gone") from None
        with file:
            is_end = touched[-1] == len(places) - 1
            tail = self._tail(table, file, touched[0]) if is_end else None
            if tail is not None:
                yield rows_within(tail.rows.select(list(columns)), window)
                return
            held_bytes = 0
            for number in touched:
                held_bytes += places[number].header.raw_bytes
                batch = self._batch(table, file, places[number], held_bytes)
                if batch is not None:
                    rows = pa.Table.from_batches([batch.select(list(columns))])
                    yield rows_within(rows, window)

    def _tail(self, table: Table, file: BinaryIO, first: int) -> _Tail | None:
        """All blocks of a table from the first that was asked for; None if they are too large."""
        places = self._places[table.name]
        tail = self._tails.get(table.name)
        from_block = first if tail is None else min(first, tail.first)
        sizes = [place.header.raw_bytes for place in places[from_block:]]
        if sum(sizes) > _TAIL_BYTES:
            # What follows a recording asks for its end: what is older is not asked for again.
            if sum(sizes[first - from_block :]) > _TAIL_BYTES:
                self._tails.pop(table.name, None)
                return None
            from_block = first
        if tail is None or from_block < tail.first:
            tail = _Tail(from_block, empty(table))
        elif from_block > tail.first:
            tail.forget_before(from_block)
        tail.add([self._batch(table, file, place) for place in places[tail.end :]])
        tail.size_bytes = sum(sizes)
        self._tails[table.name] = tail
        if sum(one.size_bytes for one in self._tails.values()) > _TAILS_BYTES:
            self._tails = {}
        return tail

    def _batch(
        self, table: Table, file: BinaryIO, place: _Place, held_bytes: int = 0
    ) -> pa.RecordBatch | None:
        """None if it is damaged, which is noted; `held_bytes` is what the reader holds with it."""
        header = place.header
        self.bytes_read += header.block_bytes
        try:
            check_size(held_bytes)
            block = read_block(file, place.offset, place.offset + header.block_bytes)
            if block is None:
                raise CorruptData("a block changed since it was first read")
            return batch_of(table, block)
        except CorruptData as error:
            self._damage[place.offset] = Gap(
                header.name, header.from_ns, header.to_ns, error.facts, lost=header.rows
            )
            return None
