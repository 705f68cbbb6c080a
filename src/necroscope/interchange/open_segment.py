"""One segment of an import while rows come for it, and how it is sealed."""

from array import array
from collections.abc import Sequence
from typing import NamedTuple

from necroscope.interchange.capture import SampleBatch
from necroscope.interchange.segment_files import SegmentEnd, SegmentFiles
from necroscope.model.frame import Frame
from necroscope.model.reading import ColumnBuffers, Gap, Rows
from necroscope.model.span import Extent
from necroscope.model.tables import TABLES
from necroscope.segment.columns import encode_column


class ClosedSegment(NamedTuple):
    """What was written: rows by table, and the first and last time of any of them."""

    reach: Extent
    rows: dict[str, int]
    size_bytes: int


class OpenSegment:
    """Stacks of captures that lie over each other are numbered one capture after the other: the
    same frame may be there twice.
    """

    def __init__(self, files: SegmentFiles, start_ns: int) -> None:
        self.rows: dict[str, Rows] = {}
        self.gaps: list[Gap] = []
        self._files = files
        self._start_ns = start_ns
        self._written: dict[str, int] = {}
        self._reach: Extent | None = None
        self._stacks = self._frames = 0
        self._first_stack = self._first_frame = 0
        self._span: Extent | None = None
        self._idle = 0
        self._largest_cpu = -1

    def add_samples(
        self,
        batch: SampleBatch,
        since_ns: int,
        stacks: tuple[bytes, bytes],
        frames: Sequence[Frame],
        *,
        is_begin: bool,
    ) -> None:
        """With the stacks and frames that they are the first to need; `is_begin`: these are
        numbered from 0 again.
        """
        first_ns, last_ns = self._span or (since_ns, batch.to_ns)
        self._span = min(first_ns, since_ns), max(last_ns, batch.to_ns)
        self._idle += batch.idle
        self._add_stacks(stacks, frames, is_begin=is_begin)
        if batch.columns is not None:
            self._largest_cpu = max((self._largest_cpu, *batch.cpu))
            span = max(batch.time_ns[0], self._start_ns), max(batch.to_ns, self._start_ns)
            self._write(
                "samples", _place(batch.columns, batch, self._first_stack, self._start_ns), span
            )

    def _add_stacks(
        self, stacks: tuple[bytes, bytes], frames: Sequence[Frame], *, is_begin: bool
    ) -> None:
        if is_begin:
            self._first_stack, self._first_frame = self._stacks, self._frames
        parents, stack_frames = (array("i", column) for column in stacks)
        if self._first_stack:
            parents = array(
                "i", [parent + self._first_stack if parent >= 0 else parent for parent in parents]
            )
            stack_frames = array("i", [frame + self._first_frame for frame in stack_frames])
        numbers = array("i", range(self._stacks, self._stacks + len(parents)))
        if parents:
            columns = (b"", numbers.tobytes(), b"", parents.tobytes(), b"", stack_frames.tobytes())
            self._write("stacks", ColumnBuffers(len(parents), columns), (0, 0))
        if frames:
            rows: Rows = [(number, *frame) for number, frame in enumerate(frames, self._frames)]
            self._write("frames", _columns("frames", rows), (0, 0))
        self._stacks += len(parents)
        self._frames += len(frames)

    def close(self, node: str, cpus: int | None) -> ClosedSegment:
        if self.gaps:
            self.rows["gaps"] = [
                gap.row() for gap in sorted(self.gaps, key=lambda gap: gap.from_ns)
            ]
        for name, rows in self.rows.items():
            self._write(name, _columns(name, rows), self._reach_of(name, rows))
        reach = self._reach or (self._start_ns, self._start_ns)
        span = self._span or reach
        end = SegmentEnd(node, cpus or (self._largest_cpu + 1 or None), span, self.gaps, self._idle)
        size_bytes = self._files.close(end)
        reach = min(span[0], reach[0]), max(span[1], reach[1])
        return ClosedSegment(reach, self._written, size_bytes)

    def abandon(self) -> None:
        self._files.abandon()

    def _reach_of(self, name: str, rows: Rows) -> Extent:
        if name == "gaps":
            return min(gap.from_ns for gap in self.gaps), max(gap.to_ns for gap in self.gaps)
        times = [row[0] for row in rows if isinstance(row[0], int)]
        return min(times), max(times)

    def _write(self, name: str, columns: ColumnBuffers, span: Extent) -> None:
        if TABLES[name].is_timed:
            first_ns, last_ns = self._reach or span
            self._reach = min(first_ns, span[0]), max(last_ns, span[1])
        self._written[name] = self._written.get(name, 0) + len(columns)
        self._files.add(name, columns, span)


def _place(
    columns: ColumnBuffers, batch: SampleBatch, first_stack: int, start_ns: int
) -> ColumnBuffers:
    """With the segment's numbers of stacks, and no time before its start: a record may come too
    late for the one before.
    """
    buffers = list(columns.buffers)
    if first_stack:
        buffers[17] = array("i", [stack + first_stack for stack in batch.stack]).tobytes()
    if batch.from_ns < start_ns:
        buffers[1] = array("q", [max(time_ns, start_ns) for time_ns in batch.time_ns]).tobytes()
    return ColumnBuffers(columns.count, tuple(buffers))


def _columns(name: str, rows: Rows) -> ColumnBuffers:
    columns = zip(*rows, strict=True)
    kinds = (column.type for column in TABLES[name].columns)
    return ColumnBuffers(
        len(rows),
        tuple(
            b
            for kind, column in zip(kinds, columns, strict=True)
            for b in encode_column(kind, column)
        ),
    )
