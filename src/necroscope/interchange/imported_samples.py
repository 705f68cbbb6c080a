"""The samples of all captures of an import, one capture after the other in the order of their
start.
"""

from typing import Final, NamedTuple

from necroscope.interchange.capture import LATEST_NS, Capture, ImportPlan, SampleBatch
from necroscope.interchange.detect import FileKind
from necroscope.interchange.import_options import Options
from necroscope.interchange.import_profile import ImportProfile
from necroscope.interchange.inputs import Input
from necroscope.interchange.perf_data.reader import sample_span_ns
from necroscope.interchange.segment_set import SegmentSet
from necroscope.interchange.wall_clock import Placing, WallClock
from necroscope.model.names import clean
from necroscope.model.reading import Gap
from necroscope.model.units import NS_PER_MS, NS_PER_S

# A shorter hole between two rolling captures is what lies between two samples, or what dating by a
# name cannot tell.
_SHORTEST_HOLE_NS: Final = 100 * NS_PER_MS
_SHORTEST_ROUGH_HOLE_NS: Final = 2 * NS_PER_S
_NOTE_LIMIT: Final = 1000


class _Placed(NamedTuple):
    given: Input
    capture: Capture
    placing: Placing
    start_ns: int


class SampleImport:
    """`samples_of` counts the samples read by the id of their input; `idle` and `lost` are of
    all.
    """

    def __init__(
        self,
        inputs: list[Input],
        segments: SegmentSet,
        profile: ImportProfile,
        clock: WallClock,
        options: Options,
    ) -> None:
        self.samples_of: dict[int, int] = {}
        self.idle = 0
        self.lost = 0
        self._inputs = inputs
        self._segments = segments
        self._profile = profile
        self._options = options
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
        span: tuple[int | None, int | None] | None
        if placed.given.kind is FileKind.PERF_DATA:
            span = sample_span_ns(path)
        else:
            from necroscope.interchange.perf_script import last_time_ns  # noqa: PLC0415 - not for perf.data

            span = first_ns, last_time_ns(path)
        if span is None or span[0] is None or span[1] is None:
            return None
        return span[0] + placed.placing.offset_ns, span[1] + placed.placing.offset_ns

    def run(self) -> None:
        next_starts_ns = [*(placed.start_ns for placed in self._placed[1:]), LATEST_NS + 1]
        for placed, next_start_ns in zip(self._placed, next_starts_ns, strict=False):
            if self._may_touch_window(placed):
                self._import_one(placed, next_start_ns)
        self._note_unread()

    def _may_touch_window(self, placed: _Placed) -> bool:
        """Not if it begins after it; the first sample in a file may be a little later than the
        earliest.
        """
        first_ns, to_ns = placed.capture.facts.first_ns, self._options.to_ns
        return (
            first_ns is None
            or to_ns is None
            or first_ns + placed.placing.offset_ns - NS_PER_S < to_ns
        )

    def _place_all(self, clock: WallClock) -> list[_Placed]:
        found = []
        for given in self._inputs:
            capture = given.capture
            if capture is None:
                continue
            placing = clock.place_capture(given, capture)
            facts = capture.facts
            if self._options.has_window and not facts.has_time:
                given.notes.append(
                    "left out: its samples have no time, so none is known to lie in the window"
                )
                continue
            start_ns = (facts.first_ns or 0) + placing.offset_ns
            if facts.first_ns is None and facts.has_time:
                start_ns = given.name.start_ns or (
                    given.written_ns if not facts.time_is_wall_clock else 0
                )
            found.append(_Placed(given, capture, placing, start_ns))
        return found

    def _import_one(self, placed: _Placed, next_start_ns: int) -> None:
        given, capture, options = placed.given, placed.capture, self._options
        plan = ImportPlan(
            self._profile,
            placed.placing.offset_ns,
            options.from_ns or 0,
            LATEST_NS + 1 if options.to_ns is None else options.to_ns,
            self._segments.segment_at,
            options.event,
        )
        first_ns = last_ns = None
        lost_reported = 0
        for batch in capture.batches(plan):
            last_ns = batch.to_ns if last_ns is None else max(last_ns, batch.to_ns)
            if first_ns is None:
                first_ns = since_ns = batch.from_ns
                self._begin(placed, first_ns)
            self._add(given, batch, since_ns)
            since_ns = last_ns
            self._segments.close_before(min(batch.from_ns, next_start_ns) - NS_PER_S)
            lost_reported = self._tell_lost(capture, lost_reported)
            options.progress(
                given.path.name,
                self._done_bytes + min(capture.bytes_read, given.size_bytes),
                self._all_bytes,
            )
        self._tell_lost(capture, lost_reported)
        self._done_bytes += given.size_bytes
        # A fault of the file begins with its path, which stands before all notes of it anyway.
        given.notes += [note.removeprefix(f"{given.path}: ") for note in capture.notes]
        self._end(placed, first_ns, last_ns)

    def _add(self, given: Input, batch: SampleBatch, since_ns: int) -> None:
        self.idle += batch.idle
        self.samples_of[id(given)] = self.samples_of.get(id(given), 0) + batch.samples
        self._segments.add_samples(batch, since_ns)

    def _begin(self, placed: _Placed, first_ns: int) -> None:
        """Told before the samples: a hole since the capture before, and times that are not the
        capture's own.
        """
        given, why = placed.given, placed.capture.facts.why_not_wall_clock
        if placed.placing.origin is not None:
            given.notes.append(
                f"times are not wall clock: {why}; placed by {placed.placing.origin}"
            )
        before = self._ends_ns.get(given.folder) if given.folder is not None else None
        shortest_ns = (
            _SHORTEST_HOLE_NS if placed.placing.origin is None else _SHORTEST_ROUGH_HOLE_NS
        )
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
            self._segments.add_gap(
                Gap("samples", at_ns, at_ns, clean(f"{given.path.name}: {note}", _NOTE_LIMIT))
            )
        if given.folder is not None:
            self._ends_ns[given.folder] = max(
                (last_ns, given.path.name), self._ends_ns.get(given.folder, (0, ""))
            )

    def _tell_lost(self, capture: Capture, reported: int) -> int:
        for lost in capture.lost[reported:]:
            at_ns = lost.time_ns
            self.lost += lost.samples
            cpu = lost.cpu if 0 <= lost.cpu < 1 << 15 else None
            if self._is_in_window(at_ns):
                self._segments.add_gap(
                    Gap(
                        "samples",
                        at_ns,
                        at_ns,
                        "samples lost: perf was too slow to read",
                        cpu,
                        lost.samples,
                    )
                )
        return len(capture.lost)

    def _is_in_window(self, at_ns: int) -> bool:
        options = self._options
        return (
            (options.from_ns or 0)
            <= at_ns
            < (LATEST_NS + 2 if options.to_ns is None else options.to_ns)
        )

    def _note_unread(self) -> None:
        """Captures of a directory that could not be opened: a gap where their names say that they
        were.
        """
        for given in self._inputs:
            start_ns = given.name.start_ns
            if given.fault and start_ns is not None and self._is_in_window(start_ns):
                cause = clean(f"{given.path.name} could not be read: {given.fault}", _NOTE_LIMIT)
                self._segments.add_gap(
                    Gap("samples", start_ns, start_ns + (given.name.length_ns or 0), cause)
                )
