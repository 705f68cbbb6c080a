"""The samples of all captures of an import, one capture after the other in the order of their start."""

from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from necroscope.interchange.capture import Capture, SampleBatch
from necroscope.interchange.detect import Kind
from necroscope.interchange.import_options import Options
from necroscope.interchange.inputs import Input
from necroscope.interchange.interned import Interned
from necroscope.interchange.perf_data.reader import open_perf_data, sample_span_ns
from necroscope.interchange.perf_script import last_time_ns
from necroscope.interchange.profile_event import ProfileEvent
from necroscope.interchange.segment_process import Segments
from necroscope.interchange.unnamed import UnnamedCount
from necroscope.interchange.wall_clock import Placing, WallClock
from necroscope.model.frame import UNKNOWN_USER
from necroscope.model.idle import IDLE_FUNCTIONS
from necroscope.model.names import clean
from necroscope.model.reading import Gap
from necroscope.model.units import NS_PER_MS, NS_PER_S

_LARGEST_NS: Final = 1 << 62
# A shorter hole between two rolling captures is what lies between two samples, or what dating by a name cannot tell.
_SHORTEST_HOLE_NS: Final = 100 * NS_PER_MS
_SHORTEST_ROUGH_HOLE_NS: Final = 2 * NS_PER_S
_NOTE_LIMIT: Final = 1000


class _Placed(NamedTuple):
    given: Input
    capture: Capture
    placing: Placing
    start_ns: int


class SampleImport:
    """`samples_of` counts the samples read by the id of their input; `idle` and `lost` are of all."""

    def __init__(self, inputs: list[Input], segments: Segments, interned: Interned, clock: WallClock, options: Options) -> None:
        self.samples_of: dict[int, int] = {}
        self.idle = 0
        self.lost = 0
        self.unnamed = UnnamedCount(interned.stacks)
        self._inputs = inputs
        self._segments = segments
        self._interned = interned
        self._options = options
        self._idle = _IdleFunctions(interned)
        self._ends_ns: dict[object, tuple[int, str]] = {}
        self._all_bytes = sum(given.size_bytes for given in inputs) or 1
        self._done_bytes = 0
        self._placed = sorted(self._place_all(clock), key=lambda placed: placed.start_ns)

    def span(self) -> tuple[int, int] | None:
        """First and last time of what the captures hold, also outside of the window."""
        spans = [span for placed in self._placed if (span := self._span_of(placed)) is not None]
        return (min(first for first, _ in spans), max(last for _, last in spans)) if spans else None

    @staticmethod
    def _span_of(placed: _Placed) -> tuple[int, int] | None:
        path, first_ns = placed.given.path, placed.capture.facts.first_ns
        span = sample_span_ns(path) if placed.given.kind is Kind.PERF_DATA else (first_ns, last_time_ns(path))
        if span is None or span[0] is None or span[1] is None:
            return None
        return span[0] + placed.placing.offset_ns, span[1] + placed.placing.offset_ns

    def run(self) -> None:
        next_starts_ns = [*(placed.start_ns for placed in self._placed[1:]), _LARGEST_NS]
        for placed, next_start_ns in zip(self._placed, next_starts_ns, strict=False):
            if self._may_touch_window(placed):
                self._import_one(placed, next_start_ns)
        self._note_unread()

    def _may_touch_window(self, placed: _Placed) -> bool:
        """Not if it begins after it; the first sample in a file may be a little later than the earliest."""
        first_ns, to_ns = placed.capture.facts.first_ns, self._options.to_ns
        return first_ns is None or to_ns is None or first_ns + placed.placing.offset_ns - NS_PER_S < to_ns

    def _place_all(self, clock: WallClock) -> list[_Placed]:
        found = []
        for given in self._inputs:
            capture = given.capture
            if capture is None:
                continue
            placing = clock.place_capture(given, capture)
            facts = capture.facts
            if self._options.has_window and not facts.has_time:
                given.notes.append("left out: its samples have no time, so none is known to lie in the window")
                continue
            start_ns = (facts.first_ns or 0) + placing.offset_ns
            if facts.first_ns is None and facts.has_time:
                start_ns = given.name.start_ns or (given.written_ns if not facts.time_is_wall_clock else 0)
            found.append(_Placed(given, capture, placing, start_ns))
        return found

    def _import_one(self, placed: _Placed, next_start_ns: int) -> None:
        given, capture = placed.given, self._windowed(placed)
        capture.stacks, capture.comms, capture.cgroups = self._interned.stacks, self._interned.comms, self._interned.cgroups
        event = ProfileEvent(capture.facts, self._options.event)
        first_ns = last_ns = None
        lost_told = 0
        for batch in capture.batches():
            found = self._prepared(event.chosen(batch), capture, placed.placing)
            if len(found):
                last_ns = int(found.time_ns[-1]) if last_ns is None else max(last_ns, int(found.time_ns[-1]))
                if first_ns is None:
                    first_ns = since_ns = int(found.time_ns[0])
                    self._begin(placed, first_ns)
                self._add(given, found, since_ns)
                since_ns = last_ns
                self._segments.close_before(min(int(found.time_ns[0]), next_start_ns) - NS_PER_S)
            lost_told = self._tell_lost(capture, placed.placing, lost_told)
            self._options.progress(given.path.name, self._done_bytes + min(capture.bytes_read, given.size_bytes), self._all_bytes)
        self._tell_lost(capture, placed.placing, lost_told)
        self._done_bytes += given.size_bytes
        # A fault of the file begins with its path, which stands before all notes of it anyway.
        given.notes += [note.removeprefix(f"{given.path}: ") for note in (*capture.notes, *event.notes())]
        self._end(placed, first_ns, last_ns)

    def _windowed(self, placed: _Placed) -> Capture:
        options, offset_ns = self._options, placed.placing.offset_ns
        if placed.given.kind is not Kind.PERF_DATA or not options.has_window:
            return placed.capture
        from_ns, to_ns = (None if at_ns is None else at_ns - offset_ns for at_ns in (options.from_ns, options.to_ns))
        return open_perf_data(placed.given.path, options.search, from_ns, to_ns)

    def _prepared(self, batch: SampleBatch, capture: Capture, placing: Placing) -> SampleBatch:
        """On the wall clock and within the window, a sample without frames as one of an unknown frame."""
        times = np.minimum(batch.time_ns, _LARGEST_NS - 1 - max(placing.offset_ns, 0)) + placing.offset_ns
        times = np.maximum.accumulate(times.clip(min=0)) if not _is_climbing(times) else times.clip(min=0)
        is_folded = capture.facts.kind == Kind.FOLDED.value
        stacks = batch.stack
        if len(stacks) and stacks.min() < 0:
            stacks = np.where(stacks < 0, self._unknown_stack(), stacks)
        ready = replace(batch, time_ns=times, stack=stacks, period=batch.period if is_folded else np.ones(len(times), np.int64))
        first, end = self._options.from_ns, self._options.to_ns
        low = 0 if first is None else int(np.searchsorted(times, first))
        high = len(times) if end is None else int(np.searchsorted(times, end))
        return ready if (low, high) == (0, len(times)) else _part(ready, slice(low, max(high, low)))

    def _unknown_stack(self) -> int:
        tree = self._interned.stacks
        return int(tree.stacks(np.array([tree.frame(UNKNOWN_USER)], np.int32), np.array([1], np.int64))[0])

    def _add(self, given: Input, batch: SampleBatch, since_ns: int) -> None:
        is_idle = self._idle.among(batch)
        self.idle += int(batch.period[is_idle].sum())
        self.samples_of[id(given)] = self.samples_of.get(id(given), 0) + int(batch.period.sum())
        self.unnamed.add(batch.stack[~is_idle])
        self._segments.add_samples(batch, is_idle, since_ns)

    def _begin(self, placed: _Placed, first_ns: int) -> None:
        """Told before the samples: a hole since the capture before, and times that are not the capture's own."""
        given, why = placed.given, placed.capture.facts.why_not_wall_clock
        if placed.placing.origin is not None:
            given.notes.append(f"times are not wall clock: {why}; placed by {placed.placing.origin}")
        before = self._ends_ns.get(given.folder) if given.folder is not None else None
        shortest_ns = _SHORTEST_HOLE_NS if placed.placing.origin is None else _SHORTEST_ROUGH_HOLE_NS
        if before is not None and first_ns - before[0] >= shortest_ns:
            cause = clean(f"no capture between {before[1]} and {given.path.name}", _NOTE_LIMIT)
            self._segments.add_gap(Gap("samples", before[0], first_ns, cause))

    def _end(self, placed: _Placed, first_ns: int | None, last_ns: int | None) -> None:
        given = placed.given
        if first_ns is None or last_ns is None:
            given.notes += [] if self._options.has_window else ["no sample was imported"]
            return
        for note in given.notes:
            at_ns = first_ns if note.startswith("times are") else last_ns
            self._segments.add_gap(Gap("samples", at_ns, at_ns, clean(f"{given.path.name}: {note}", _NOTE_LIMIT)))
        if given.folder is not None:
            self._ends_ns[given.folder] = max((last_ns, given.path.name), self._ends_ns.get(given.folder, (0, "")))

    def _tell_lost(self, capture: Capture, placing: Placing, told: int) -> int:
        for lost in capture.lost[told:]:
            at_ns = min(max(lost.time_ns + placing.offset_ns, 0), _LARGEST_NS)
            self.lost += lost.samples
            cpu = lost.cpu if 0 <= lost.cpu < 1 << 15 else None
            if self._is_in_window(at_ns):
                self._segments.add_gap(Gap("samples", at_ns, at_ns, "samples lost: perf was too slow to read", cpu, lost.samples))
        return len(capture.lost)

    def _is_in_window(self, at_ns: int) -> bool:
        options = self._options
        return (options.from_ns or 0) <= at_ns < (_LARGEST_NS + 1 if options.to_ns is None else options.to_ns)

    def _note_unread(self) -> None:
        """Captures of a directory that could not be opened: a gap where their names say that they were."""
        for given in self._inputs:
            start_ns = given.name.start_ns
            if given.fault and start_ns is not None and self._is_in_window(start_ns):
                cause = clean(f"{given.path.name} could not be read: {given.fault}", _NOTE_LIMIT)
                self._segments.add_gap(Gap("samples", start_ns, start_ns + (given.name.length_ns or 0), cause))


class _IdleFunctions:
    """Samples of a core with nothing to do: of the idle task, in a function that waits for an interrupt."""

    def __init__(self, interned: Interned) -> None:
        self._interned = interned
        self._flags: list[bool] = []

    def among(self, batch: SampleBatch) -> npt.NDArray[np.bool_]:
        tree, comms = self._interned.stacks, self._interned.comms.texts
        self._flags += [frame.function in IDLE_FUNCTIONS for frame in tree.frames[len(self._flags) :]]
        is_waiting = np.array(self._flags, bool)[np.array(tree.stack_frames, np.int32)]
        found: npt.NDArray[np.bool_] = (batch.pid == 0) & is_waiting[batch.stack]
        if (batch.pid < 0).any():
            is_idle_task = np.array([comm.startswith("swapper") for comm in comms], bool)
            found |= (batch.pid < 0) & is_idle_task[batch.comm] & is_waiting[batch.stack]
        return found


def _is_climbing(times: npt.NDArray[np.int64]) -> bool:
    return bool((times[1:] >= times[:-1]).all())


def _part(batch: SampleBatch, part: slice) -> SampleBatch:
    return SampleBatch(*(getattr(batch, name)[part] for name in SampleBatch.__slots__))
