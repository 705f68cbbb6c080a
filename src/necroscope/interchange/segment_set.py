"""The segments of an import, five minutes each: open while rows may still come for them, sealed as
time passes.
"""

import sys
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from necroscope.interchange.capture import SampleBatch
from necroscope.interchange.import_profile import ImportProfile
from necroscope.interchange.unnamed import UnnamedCount
from necroscope.model.library_pages import release_library_pages
from necroscope.model.reading import Gap, Row
from necroscope.model.span import Extent
from necroscope.model.units import NS_PER_S
from necroscope.segment.checksum import sync_directory, write_checked
from necroscope.segment.recording import SPANS_FILE, segment_name

if TYPE_CHECKING:
    from necroscope.interchange.open_segment import OpenSegment
    from necroscope.interchange.segment_files import SegmentFiles
import queue
from collections.abc import Callable
from threading import Thread

# Pieces of work that may wait: each holds a batch of samples.
_MOST_WAITING: Final = 6


class Behind:
    """A fault of the work is raised to who asks for more of it, or to who waits for its end."""

    def __init__(self) -> None:
        self._waiting: queue.Queue[Callable[[], None] | None] = queue.Queue(_MOST_WAITING)
        self._fault: Exception | None = None
        self._thread = Thread(target=self._run)
        self._thread.start()

    def do(self, work: Callable[[], None]) -> None:
        self._raise_fault()
        self._waiting.put(work)

    def finish(self) -> None:
        """Returns when all is done; nothing may be asked for afterwards."""
        self.stop()
        self._raise_fault()

    def stop(self) -> None:
        """As `finish`, whatever went wrong."""
        if self._thread.is_alive():
            self._waiting.put(None)
            self._thread.join()

    def _raise_fault(self) -> None:
        if self._fault is not None:
            raise self._fault

    def _run(self) -> None:
        while (work := self._waiting.get()) is not None:
            if self._fault is None:
                try:
                    work()
                except Exception as error:  # noqa: BLE001 - raised in the thread that asked for it
                    self._fault = error


SEGMENT_NS: Final = 300 * NS_PER_S
# Times that jump about would make a segment each; beyond these (a month) rows go to the segment
# before them.
MOST_SEGMENTS: Final = 10_000
_NEVER_NS: Final = 1 << 63


class SegmentSet:
    """`rows`, `size_bytes` and `spans` are known once it is closed; `in_journals` leaves the
    segments unsealed.

    Arrow, which takes as long to load as a hundred thousand samples to read, is loaded and used by
    a thread of its own.
    """

    def __init__(
        self,
        directory: Path,
        profile: ImportProfile,
        node: str,
        cpus: int | None,
        *,
        in_journals: bool = False,
    ) -> None:
        self.rows: dict[str, int] = {}
        self.size_bytes = 0
        self.spans: dict[str, Extent] = {}
        self.unnamed = UnnamedCount(profile.core)
        self._directory = directory
        self._profile = profile
        self._node = node
        self._cpus = cpus
        self._open: dict[int, OpenSegment] = {}
        self._unclosed: set[OpenSegment] = set()
        self._made: set[int] = set()
        self._first = 0
        self._numbering = -1
        self._taken = (0, 0)
        self._in_journals = in_journals
        self._writing = Behind()
        if not in_journals:
            self._writing.do(_load_arrow)

    def segment_at(self, time_ns: int) -> tuple[int, int]:
        """Its number, and the time at which the next one begins. What comes late goes to the first
        that is still open.
        """
        segment = max(time_ns // SEGMENT_NS, self._first)
        if segment not in self._made and len(self._made) >= MOST_SEGMENTS:
            return max(self._made), _NEVER_NS
        return segment, (segment + 1) * SEGMENT_NS

    def add_samples(self, batch: SampleBatch, since_ns: int) -> None:
        """Samples with their wall clock; `since_ns` is from when on the capture was running without
        a break.
        """
        core, names = self._profile.core, self._profile.names
        segment = self._segment(batch.segment)
        if self._numbering != self._profile.numbering:
            self._numbering, self._taken = self._profile.numbering, (0, 0)
            self.unnamed.start_segment()
        stacks, frames = core.stacks(self._taken[0]), names.fetch(self._taken[1])
        is_begin, self._taken = self._taken == (0, 0), (core.view.node_count, core.view.frame_count)
        self.unnamed.add(batch, frames)
        begin_ns = max(since_ns, batch.segment * SEGMENT_NS)
        self._writing.do(
            lambda: segment.add_samples(batch, begin_ns, stacks, frames.named(), is_begin=is_begin)
        )

    def add_rows(self, table: str, rows: Iterable[Row]) -> None:
        """Rows of a table whose first column is the time."""
        for row in rows:
            time_ns = row[0]
            if isinstance(time_ns, int):
                self._segment(self.segment_at(time_ns)[0]).rows.setdefault(table, []).append(row)

    def add_gap(self, gap: Gap) -> None:
        self._segment(self.segment_at(gap.from_ns)[0]).gaps.append(gap)

    def close_before(self, time_ns: int) -> None:
        """Seal what ended before this time; rows that come late for it go to the first segment
        still open.
        """
        self._first = max(self._first, time_ns // SEGMENT_NS)
        for segment in sorted(segment for segment in self._open if segment < self._first):
            self._close(segment)

    def close(self) -> None:
        for segment in sorted(self._open):
            self._close(segment)
        self._writing.finish()
        if not self._in_journals:
            write_checked(self._directory / SPANS_FILE, self.spans)
            sync_directory(self._directory)

    def abandon(self) -> None:
        self._writing.stop()
        for segment in self._unclosed:
            segment.abandon()

    def _segment(self, number: int) -> "OpenSegment":
        segment = self._open.get(number)
        if segment is None:
            from necroscope.interchange.open_segment import OpenSegment  # noqa: PLC0415

            self._made.add(number)
            start_ns = number * SEGMENT_NS
            segment = self._open[number] = OpenSegment(self._files(start_ns), start_ns)
            self._unclosed.add(segment)
        return segment

    def _files(self, start_ns: int) -> "SegmentFiles":
        from necroscope.interchange.segment_files import JournalFiles, SealedFiles  # noqa: PLC0415

        path = self._directory / segment_name(start_ns)
        return JournalFiles(path, self._node, start_ns) if self._in_journals else SealedFiles(path)

    def _close(self, number: int) -> None:
        self._writing.do(partial(self._close_one, number, self._open.pop(number)))

    def _close_one(self, number: int, segment: "OpenSegment") -> None:
        closed = segment.close(self._node, self._cpus)
        self._unclosed.remove(segment)
        self.spans[segment_name(number * SEGMENT_NS)] = closed.reach
        self.size_bytes += closed.size_bytes
        for name, count in closed.rows.items():
            self.rows[name] = self.rows.get(name, 0) + count


def _load_arrow() -> None:
    is_first = "pyarrow" not in sys.modules
    import necroscope.segment.table_writer  # noqa: F401, PLC0415

    if is_first:
        release_library_pages()
