"""The segments of an import, five minutes each: open while rows may still come for them, sealed as time passes."""

from collections.abc import Iterable
from pathlib import Path
from threading import Thread
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from necroscope.interchange.capture import SampleBatch
from necroscope.interchange.import_options import IMPORTED_BOOT
from necroscope.interchange.interned import Interned
from necroscope.interchange.segment_numbers import SegmentNumbers
from necroscope.model.reading import Gap, Row, Rows
from necroscope.model.tables import SCHEMA_VERSION, TABLES
from necroscope.model.units import NS_PER_S
from necroscope.segment.arrow import batch_from_rows, schema_of
from necroscope.segment.checksum import sync_directory, write_checked
from necroscope.segment.manifest import GAP_LIMIT, Manifest, TableEntry, merge_gaps
from necroscope.segment.recording import SPANS_FILE, segment_name
from necroscope.segment.spans import Span
from necroscope.segment.table_writer import TableWriter

SEGMENT_NS: Final = 300 * NS_PER_S
# Times that jump about would make a segment each; beyond these (a month) rows go to the segment before them.
MOST_SEGMENTS: Final = 10_000
_LARGEST_CPU: Final = 32767
_LARGEST_WEIGHT: Final = (1 << 31) - 1


class SegmentSet:
    def __init__(self, directory: Path, interned: Interned, node: str, cpus: int | None) -> None:
        self.rows: dict[str, int] = {}
        self.size_bytes = 0
        self.spans: dict[str, Span] = {}
        self._directory = directory
        self._interned = interned
        self._node = node
        self._cpus = cpus
        self._open: dict[int, _OpenSegment] = {}
        self._made = 0
        self._first_slot = 0

    def add_samples(self, batch: SampleBatch, is_idle: npt.NDArray[np.bool_], since_ns: int) -> None:
        """Samples in time order with their wall clock; `since_ns` is from when on the capture was running without a break."""
        slots = np.maximum(batch.time_ns // SEGMENT_NS, self._first_slot)
        begins = np.flatnonzero(np.diff(slots, prepend=slots[0] - 1))
        for begin, end in zip(begins.tolist(), [*begins[1:].tolist(), len(slots)], strict=True):
            slot = int(slots[begin])
            segment = self._segment(slot)
            is_last = end == len(slots)
            segment.cover(
                max(since_ns, slot * SEGMENT_NS), int(batch.time_ns[end - 1]) if is_last else (slot + 1) * SEGMENT_NS - 1
            )
            segment.add_samples(batch, slice(begin, end), is_idle[begin:end])

    def add_rows(self, table: str, rows: Iterable[Row]) -> None:
        """Rows of a table whose first column is the time."""
        for row in rows:
            time_ns = row[0]
            if isinstance(time_ns, int):
                segment = self._segment(max(time_ns // SEGMENT_NS, self._first_slot))
                segment.rows.setdefault(table, []).append(row)

    def add_gap(self, gap: Gap) -> None:
        self._segment(max(gap.from_ns // SEGMENT_NS, self._first_slot)).gaps.append(gap)

    def close_before(self, time_ns: int) -> None:
        """Seal what ended before this time; rows that come late for it go to the first segment still open."""
        self._first_slot = max(self._first_slot, time_ns // SEGMENT_NS)
        for slot in sorted(slot for slot in self._open if slot < self._first_slot):
            self._seal(slot)

    def close(self) -> None:
        for slot in sorted(self._open):
            self._seal(slot)
        write_checked(self._directory / SPANS_FILE, self.spans)
        sync_directory(self._directory)

    def abandon(self) -> None:
        for segment in self._open.values():
            segment.abandon()

    def _segment(self, slot: int) -> "_OpenSegment":
        segment = self._open.get(slot)
        if segment is not None:
            return segment
        if self._made >= MOST_SEGMENTS and self._open:
            return self._open[max(self._open)]
        self._made += 1
        segment = self._open[slot] = _OpenSegment(self._directory / segment_name(slot * SEGMENT_NS), self._interned)
        return segment

    def _seal(self, slot: int) -> None:
        segment = self._open.pop(slot)
        manifest = segment.seal(self._node, self._cpus)
        self.spans[manifest.segment] = manifest.reach
        for name, entry in manifest.tables.items():
            self.rows[name] = self.rows.get(name, 0) + entry.rows
            self.size_bytes += entry.bytes


class _OpenSegment:
    def __init__(self, path: Path, interned: Interned) -> None:
        self.rows: dict[str, Rows] = {}
        self.gaps: list[Gap] = []
        self._path = path
        self._interned = interned
        self._numbers = SegmentNumbers(interned.stacks)
        self._samples: TableWriter | None = None
        self._span: Span | None = None
        self._idle = 0
        self._writing: Thread | None = None
        self._fault: Exception | None = None
        self._largest_cpu = -1
        path.mkdir(mode=0o700)

    def cover(self, from_ns: int, to_ns: int) -> None:
        first_ns, last_ns = self._span or (from_ns, to_ns)
        self._span = min(first_ns, from_ns), max(last_ns, to_ns)

    def add_samples(self, batch: SampleBatch, part: slice, is_idle: npt.NDArray[np.bool_]) -> None:
        self._idle += int(batch.period[part][is_idle].sum())
        self._largest_cpu = max(self._largest_cpu, int(batch.cpu[part].max()))
        kept = np.flatnonzero(~is_idle) + part.start
        if not len(kept):
            return
        if self._samples is None:
            self._samples = TableWriter(TABLES["samples"], self._path / "samples.parquet")
        cpu = batch.cpu[kept]
        arrays = [
            pa.array(batch.time_ns[kept]),
            pa.array(np.where(cpu <= _LARGEST_CPU, cpu, -1).astype(np.int16)),
            pa.array(batch.pid[kept]),
            pa.array(batch.tid[kept]),
            _texts(batch.comm[kept], self._interned.comms.texts),
            _texts(batch.cgroup[kept], self._interned.cgroups.texts),
            pa.array(self._numbers.number(batch.stack[kept])),
            pa.array(batch.period[kept].clip(0, _LARGEST_WEIGHT).astype(np.int32)),
        ]
        rows = pa.RecordBatch.from_arrays(arrays, schema=schema_of(TABLES["samples"]))
        self._write_behind(self._samples, rows, int(batch.time_ns[kept[0]]), int(batch.time_ns[kept[-1]]))

    def _write_behind(self, writer: TableWriter, rows: pa.RecordBatch, from_ns: int, to_ns: int) -> None:
        """In a thread, one batch at a time: Arrow packs it while the next one is read."""
        self._finish_writing()

        def write() -> None:
            try:
                writer.add(rows, from_ns, to_ns)
            except Exception as error:  # noqa: BLE001 - raised in the thread that asked for it
                self._fault = error

        self._writing = Thread(target=write)
        self._writing.start()

    def _finish_writing(self) -> None:
        if self._writing is not None:
            self._writing.join()
        if self._fault is not None:
            raise self._fault

    def seal(self, node: str, cpus: int | None) -> Manifest:
        entries: dict[str, TableEntry] = {}
        self._finish_writing()
        if self._samples is not None:
            entries["samples"] = self._samples.close()
            entries |= {name: self._write(name, batch, (0, 0)) for name, batch in self._numbers.tables().items()}
        if self.gaps:
            self.rows["gaps"] = [gap.row() for gap in sorted(self.gaps, key=lambda gap: gap.from_ns)]
        for name, rows in self.rows.items():
            entries[name] = self._write(name, batch_from_rows(TABLES[name], rows), self._reach_of(name, rows))
        reaches = [(entry.from_ns, entry.to_ns) for name, entry in entries.items() if TABLES[name].is_timed]
        from_ns, to_ns = self._span or (min(first for first, _ in reaches), max(last for _, last in reaches))
        manifest = Manifest(
            SCHEMA_VERSION,
            self._path.name,
            node,
            IMPORTED_BOOT,
            from_ns,
            to_ns,
            cpus or (self._largest_cpu + 1 or None),
            entries,
            self.gaps if len(self.gaps) <= GAP_LIMIT else merge_gaps(self.gaps),
            len(self.gaps) > GAP_LIMIT,
            sum(gap.lost or 0 for gap in self.gaps if gap.table == "samples"),
            self._idle,
        )
        manifest.write(self._path)
        return manifest

    def abandon(self) -> None:
        if self._writing is not None:
            self._writing.join()
        if self._samples is not None:
            self._samples.abandon()

    def _reach_of(self, name: str, rows: Rows) -> Span:
        if name == "gaps":
            return min(gap.from_ns for gap in self.gaps), max(gap.to_ns for gap in self.gaps)
        times = [row[0] for row in rows if isinstance(row[0], int)]
        return min(times), max(times)

    def _write(self, name: str, batch: pa.RecordBatch, span: Span) -> TableEntry:
        writer = TableWriter(TABLES[name], self._path / f"{name}.parquet")
        try:
            writer.add(batch, *span)
            return writer.close()
        except BaseException:
            writer.abandon()
            raise


def _texts(numbers: npt.NDArray[np.int32], texts: list[str]) -> pa.DictionaryArray:
    """Numbers as a dictionary of the texts that they use; -1 is null."""
    used = np.flatnonzero(np.bincount(numbers[numbers >= 0]))
    place = np.zeros(len(texts) + 1, np.int32)
    place[used] = np.arange(len(used), dtype=np.int32)
    indices = pa.array(place[numbers], mask=numbers < 0)
    return pa.DictionaryArray.from_arrays(indices, pa.array([texts[number] for number in used.tolist()], pa.utf8()))
