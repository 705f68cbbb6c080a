"""The recording's directory belongs to one thread: it writes the journal, seals segments, keeps the
ring and the disk in bounds.

A disk can hang for minutes exactly when a node is sick. The loop hands over its rows and goes on;
rows wait here within a bound, and beyond it they are dropped with a gap. A full disk costs the
oldest segments, then a pause with a gap, never the recorder. Rows that were lost may have held
stacks that later samples refer to: after a loss the recorder begins a new segment.
"""

import contextlib
import errno
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Final, NamedTuple

from necroscope.errors import CorruptData, RecordingError
from necroscope.model.reading import Gap
from necroscope.model.units import format_bytes
from necroscope.recorder.retention import RetentionLimits, Stock, StoredSegment, merge_pins
from necroscope.recorder.seal_queue import SealQueue, StaysJournal
from necroscope.recorder.sink import RowBatch
from necroscope.segment.journal import JournalWriteError, JournalWriter, SegmentHeader
from necroscope.segment.recording import (
    LIVE,
    Pin,
    new_segment_path,
    read_pins,
    remove_leftovers,
    remove_segment,
    segment_bytes,
    segment_paths,
    segment_start_ns,
    write_pins,
)

# By memory, because a sample in a buffer takes a tenth of a row that is a tuple: about 15 s of 448
# cores. A batch that is larger is taken all the same where nothing waits.
_WAITING_BYTES: Final = 64 << 20
_KEEP_HOUSE_S: Final = 10.0
_MOST_PINS: Final = 1000
_MOST_UNSEALED_GAPS: Final = 100


class _Rows(NamedTuple):
    batch: RowBatch
    idle_samples: int
    size_bytes: int
    from_ns: int
    to_ns: int


class _StartSegment(NamedTuple):
    start_ns: int


class _Stop:
    pass


_Work = _Rows | _StartSegment | Pin | Gap
# A new segment's header, given its name and start.
HeaderFactory = Callable[[str, int], SegmentHeader]


class Disk:
    """A `Sink`. `close` waits until the last segment is sealed."""

    def __init__(
        self,
        directory: Path,
        header: HeaderFactory,
        limits: RetentionLimits,
        free_floor_ratio: float,
        start_ns: int,
    ) -> None:
        self.size_bytes = 0
        self.segments = 0
        self.pauses = 0
        self._directory = directory
        self._header = header
        self._limits = limits
        self._free_floor_ratio = free_floor_ratio
        self._jobs: SimpleQueue[_Work | _Stop] = SimpleQueue()
        self._waiting_bytes = 0
        self._notices: deque[str] = deque(maxlen=100)
        self._journal: JournalWriter | None = None
        self._listed: tuple[int, Path | None, Path | None] | None = None
        self._stock = Stock([], [], limits)
        self._pause: tuple[int, str] | None = None
        self._dropping: Gap | None = None
        self._owed_gaps: list[Gap] = []
        self._unsealed_gaps: list[Gap] = []
        self._has_lost = False
        self._last_time_ns = start_ns
        self._house_kept = 0.0
        self._seals = SealQueue(remove_leftovers(directory))
        self._pins = self._read_pins()
        self._has_new_pins = False
        # Age counts by the time that passes: a clock that is stepped makes nothing older.
        self._age_offset_ns = start_ns - time.monotonic_ns()
        self._thread = threading.Thread(target=self._run, name="necroscope-disk", daemon=True)
        self._keep_house(start_ns)
        self._thread.start()

    def write(self, batch: RowBatch, idle_samples: int, now_ns: int) -> None:
        size_bytes = batch.size_bytes
        from_ns, self._last_time_ns = self._last_time_ns, now_ns
        if self._waiting_bytes and self._waiting_bytes + size_bytes > _WAITING_BYTES:
            self._drop_rows(len(batch), from_ns)
            return
        self._hand_over_dropped()
        self._waiting_bytes += size_bytes
        self._jobs.put(_Rows(batch, idle_samples, size_bytes, from_ns, self._last_time_ns))

    def start_segment(self, start_ns: int) -> None:
        self._jobs.put(_StartSegment(start_ns))

    def pin(self, pin: Pin) -> None:
        self._jobs.put(pin)

    def take_loss(self) -> bool:
        has_lost, self._has_lost = self._has_lost, False
        return has_lost

    def take_notices(self) -> list[str]:
        return [self._notices.popleft() for _ in range(len(self._notices))] if self._notices else []

    def close(self) -> None:
        self._hand_over_dropped()
        self._jobs.put(_Stop())
        self._thread.join()

    def _drop_rows(self, count: int, from_ns: int) -> None:
        """One gap for as long as it lasts, kept here: as a row of the next batch it would be
        dropped with it.
        """
        cause = "the disk did not take writes in time"
        if self._dropping is None:
            self._notices.append(f"recording pauses: {cause}")
        begun = self._dropping or Gap("*", from_ns, from_ns, cause, lost=0)
        self._dropping = begun._replace(to_ns=self._last_time_ns, lost=(begun.lost or 0) + count)

    def _hand_over_dropped(self) -> None:
        if self._dropping is not None:
            self._jobs.put(self._dropping)
            self._dropping, self._has_lost = None, True

    def _run(self) -> None:
        while True:
            try:
                # Each second only while a child seals: a wake for nothing costs as much as half a
                # source.
                job = self._jobs.get(timeout=1.0 if self._seals.is_busy else None)
            except Empty:
                self._keep_journals(self._seals.tend())
                continue
            if isinstance(job, _Stop):
                return self._stop()
            try:
                self._do(job)
            except (OSError, RecordingError) as error:
                self._note_failure(job, f"recording directory: {error}")
            except Exception as error:  # noqa: BLE001 - a row that cannot be written costs its segment's rest, not the recorder
                self._close_segment()
                self._note_failure(job, f"internal error: {error!r}")
            if self._has_new_pins and (isinstance(job, _Rows) or self._jobs.empty()):
                self._keep_pins()
            self._keep_journals(self._seals.tend())

    def _stop(self) -> None:
        """Whatever becomes of the end, the loop that waits for it must not wait forever."""
        try:
            self._finish()
        except (OSError, RecordingError) as error:
            self._notices.append(f"recording directory: {error}")

    def _note_failure(self, job: _Work, cause: str) -> None:
        """Rows that were not written are a pause, which becomes a gap; the rest is reported."""
        if isinstance(job, _Rows):
            self._pause_from(job, cause)
        else:
            self._notices.append(cause)

    def _do(self, job: _Work) -> None:
        if isinstance(job, _Rows):
            self._waiting_bytes -= job.size_bytes
            self._write_rows(job)
        elif isinstance(job, _StartSegment):
            self._open_segment(job.start_ns)
        elif isinstance(job, Gap):
            self._owed_gaps.append(job)
        else:
            self._pins = merge_pins([*self._pins, job])[-_MOST_PINS:]
            self._listed = None  # what pins keep is told apart when it is asked for next
            self._has_new_pins = True

    def _keep_pins(self) -> None:
        """Once for all that came: on 448 cores an incident begins with as many pins."""
        self._has_new_pins = False
        try:
            write_pins(self._directory, self._pins)
        except OSError as error:
            self._notices.append(f"pinned windows cannot be written: {error.strerror}")

    def _open_segment(self, start_ns: int) -> None:
        self._close_segment()
        path = new_segment_path(self._directory, start_ns)
        header = self._header(path.name.removesuffix(LIVE), start_ns)
        try:
            self._journal = JournalWriter(path, header)
        except JournalWriteError as error:
            self._make_room(error.error_number)
            self._journal = JournalWriter(path, header)

    def _close_segment(self) -> None:
        if self._journal is None:
            return
        journal, self._journal = self._journal, None
        try:
            journal.close()
        except Exception as error:  # noqa: BLE001 - what was flushed before stays readable
            self._notices.append(f"the last rows of a segment are lost: {error}")
        self._seals.add(journal.path.parent)

    def _write_rows(self, job: _Rows) -> None:
        if time.monotonic() - self._house_kept > _KEEP_HOUSE_S:
            self._keep_house(job.from_ns)
        if self._journal is None:
            self._pause_from(job, "no segment could be opened")
            self._open_segment(job.to_ns)
        if self._pause is not None and self._missing_bytes() > 0:
            return
        assert self._journal is not None
        self._append(self._journal, job)
        try:
            self._flush(self._journal)
        except JournalWriteError as error:
            self._journal.discard()
            self._pause_from(job, error.facts)
        else:
            self._settle_gaps()

    def _append(self, journal: JournalWriter, job: _Rows) -> None:
        self._append_gaps(journal, job.from_ns)
        for table, rows in job.batch.rows.items():
            journal.append(table, rows)
        for table, columns in job.batch.columns:
            journal.append_columns(table, columns)
        journal.idle_samples = job.idle_samples

    def _append_gaps(self, journal: JournalWriter, until_ns: int) -> None:
        """All that was lost until now, and again with the next rows if these cannot be written."""
        gaps = [*self._owed_gaps, *self._unsealed_gaps]
        if self._pause is not None:
            gaps.append(Gap("*", self._pause[0], until_ns, self._pause[1]))
        if gaps:
            journal.append("gaps", [gap.row() for gap in gaps])

    def _flush(self, journal: JournalWriter) -> None:
        try:
            self.size_bytes += journal.flush()
        except JournalWriteError as error:
            self._make_room(error.error_number)
            self.size_bytes += journal.flush()

    def _make_room(self, error_number: int | None) -> None:
        """A full disk costs the oldest segments first; other errors no room would cure."""
        if error_number in (errno.ENOSPC, errno.EDQUOT):
            self._measure()
            self._drop(max(1, self._live_bytes()), is_full=True)

    def _pause_from(self, job: _Rows, cause: str) -> None:
        if self._pause is None:
            self._pause = (job.from_ns, cause)
            self._notices.append(f"recording pauses: {cause}")

    def _settle_gaps(self) -> None:
        """Only now that they are durable."""
        self._seals.release()
        self._unsealed_gaps.clear()
        if self._pause is None and not self._owed_gaps:
            return
        self.pauses += len(self._owed_gaps)
        if self._pause is not None:
            self.pauses += 1
            self._pause, self._has_lost = None, True
        self._owed_gaps.clear()
        self._notices.append("recording goes on")

    def _missing_bytes(self) -> int:
        space = os.statvfs(self._directory)
        return int(self._free_floor_ratio * space.f_blocks - space.f_bavail) * space.f_frsize

    def _keep_house(self, since_ns: int) -> None:
        """Bounds of the ring and of the disk; when dropping everything was not enough, a pause
        begins, of all rows since then.
        """
        self._house_kept = time.monotonic()
        self._measure()
        self._drop(self._missing_bytes())
        missing_bytes = self._missing_bytes()
        if missing_bytes > 0 and self._pause is None:
            floor = f"{self._free_floor_ratio:.0%}"
            cause = (
                f"the disk is {format_bytes(missing_bytes)} short of its free-space floor of"
                f" {floor}"
            )
            self._pause = (since_ns, cause)
            self._notices.append(f"recording pauses: {cause}; free space, or lower --free-floor")

    def _measure(self) -> None:
        """A week is two thousand segments: they are listed again only when the directory or what is
        unfinished in it changed.
        """
        recording = self._journal.path.parent if self._journal else None
        listed = (self._directory.stat().st_mtime_ns, recording, self._seals.sealing)
        if listed != self._listed:
            busy = self._seals.sealing
            self._stock = Stock(
                self._list_segments(recording),
                self._pins,
                self._limits,
                busy.name if busy else None,
            )
            self._listed = listed
        self.segments = len(self._stock.segments)
        self.size_bytes = self._stock.size_bytes + self._live_bytes()

    def _list_segments(self, recording: Path | None) -> list[StoredSegment]:
        """All but the one being recorded. The others never change, also those that wait to be
        sealed: each is measured once.

        A segment ends where the next begins.
        """
        known = {segment.name: segment for segment in self._stock.segments if segment.size_bytes}
        paths = [path for path in segment_paths(self._directory) if path != recording]
        starts = [
            known[path.name].from_ns if path.name in known else segment_start_ns(path.name)
            for path in paths
        ]
        sizes = [
            known[path.name].size_bytes if path.name in known else segment_bytes(path)
            for path in paths
        ]
        ends = [*starts[1:], self._last_time_ns]
        names = [path.name for path in paths]
        return list(map(StoredSegment, names, starts, ends, sizes))

    def _live_bytes(self) -> int:
        """What is being written: the open journal, and the tables of the one being sealed."""
        return (self._journal.size_bytes if self._journal else 0) + self._seals.unfinished_bytes()

    def _drop(self, missing_bytes: int, *, is_full: bool = False) -> None:
        now_ns = self._age_offset_ns + time.monotonic_ns()
        names = self._stock.to_drop(self._live_bytes(), now_ns, missing_bytes, is_full=is_full)
        if not names:
            return
        self._listed = None
        for name in names:
            self._seals.discard(self._directory / name)
            remove_segment(self._directory / name)
        self._measure()

    def _read_pins(self) -> list[Pin]:
        try:
            return read_pins(self._directory)
        except CorruptData as error:
            self._notices.append(f"pinned windows are lost: {error.facts}")
            return []

    def _keep_journals(self, given_up: Sequence[StaysJournal]) -> None:
        """Segments that will not be sealed are reported, with a gap in the table that only a seal
        derives.
        """
        if not given_up:
            return
        with contextlib.suppress(OSError, RecordingError):
            self._measure()  # where each of them ends
        ends = {segment.name: segment.to_ns for segment in self._stock.segments}
        for segment in given_up:
            name = segment.path.name
            self._notices.append(f"segment {name} stays a journal: {segment.cause}")
            self._unsealed_gaps.append(segment.gap(ends.get(name)))
        del self._unsealed_gaps[:-_MOST_UNSEALED_GAPS]

    def _finish(self) -> None:
        if self._has_new_pins:
            self._keep_pins()
        if self._journal is not None:
            self._append_gaps(self._journal, self._last_time_ns)
        self._close_segment()
        self._keep_journals(self._seals.finish())
        self._measure()
