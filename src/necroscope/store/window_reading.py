"""Goes through the segments of a window in pieces, stops at the time limit, and tells what of the
window is not in the answer.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import pairwise
from typing import Final, TypeVar

from necroscope.model.reading import Gap, merge_gaps
from necroscope.model.span import Span, merge
from necroscope.model.units import format_moment
from necroscope.segment.reader import SegmentReader
from necroscope.segment.sealed_reader import SegmentGoneError
from necroscope.segment.window import overlaps
from necroscope.store.catalog import Segment
from necroscope.store.query import Store
from necroscope.store.time_limit import TimeLimit

Answer = TypeVar("Answer")

# A read of this many samples takes about a tenth of a second: so often the time limit is looked at.
_ROWS_AT_ONCE: Final = 1_000_000
# Between the last row of a segment and the start of the next lies up to a tick; a longer hole was
# not recorded, or removed.
_HOLE_NS: Final = 3_000_000_000
# What misses at an end of the window is what lies between two samples of a slow rate, not worth a
# word.
_EDGE_NS: Final = 100_000_000
_MOST_GAPS: Final = 5
_TABLES: Final = ("samples", "stacks", "frames", "*")


class WindowReading:
    """One question to some tables of a window. What it knows of the window is complete once
    `segments` is exhausted.
    """

    def __init__(
        self,
        store: Store,
        from_ns: int,
        to_ns: int,
        limit: TimeLimit,
        tables: Collection[str] = _TABLES,
    ) -> None:
        self.from_ns = from_ns
        self.to_ns = max(to_ns, from_ns)
        self.read_to_ns = self.to_ns
        self.spans: list[Span] = []
        self.gaps: list[Gap] = []
        self._catalog = store.catalog
        self._limit = limit
        self._tables = tables
        self._is_stopped = False

    def segments(self, question: Callable[[SegmentReader], Answer]) -> Iterator[Answer]:
        """The answer of each segment, oldest first. One sealed meanwhile is read again, one removed
        is left out.
        """
        self._catalog.refresh()
        for segment in self._catalog.within((self.from_ns, self.to_ns)):
            if self._is_stopped:
                return
            try:
                reader, answer = self._ask(segment, question)
            except SegmentGoneError:
                self.gaps.append(
                    Gap(
                        "samples",
                        segment.from_ns,
                        segment.to_ns,
                        f"segment {segment.path.name} was removed",
                    )
                )
                continue
            self._take_in(reader)
            yield answer

    def slices(self, reader: SegmentReader) -> Iterator[Span]:
        """Pieces of a segment's part of the window, for the question to read one by one; ends early
        at the time limit.
        """
        from_ns, to_ns = max(self.from_ns, reader.reach[0]), min(self.to_ns, reader.reach[1] + 1)
        rows_per_ns = reader.tables.get("samples", 0) / (reader.span[1] + 1 - reader.span[0])
        pieces = max(1, round(rows_per_ns * (to_ns - from_ns) / _ROWS_AT_ONCE))
        bounds = [from_ns + (to_ns - from_ns) * piece // pieces for piece in range(pieces + 1)]
        for start_ns, end_ns in pairwise(bounds):
            if self._stops_at(start_ns):
                return
            yield Span(start_ns, end_ns)

    def stops_before(self, reader: SegmentReader) -> bool:
        """Whether the time is over; for a question that reads a segment at once."""
        return self._stops_at(max(self.from_ns, reader.reach[0]))

    def recorded(self, cpus: frozenset[int] | None = None) -> list[Span]:
        """Stretches of the window that were recorded and read: spans of segments without the gaps
        that hit all these cores.
        """
        stretches = [
            Span(max(a, self.from_ns), min(b, self.read_to_ns))
            for a, b in merge(self.spans, _HOLE_NS)
        ]
        for gap in self.gaps:
            if gap.cpu is None or cpus == frozenset({gap.cpu}):
                stretches = [
                    part for stretch in stretches for part in _without(stretch, _ends(gap))
                ]
        return [stretch for stretch in stretches if stretch.length_ns > 0]

    def answered(self) -> Span:
        """From where to where there is something to answer with: the window without what lies
        outside of the recording.
        """
        spans = merge(self.spans, _HOLE_NS)
        if not spans:
            return Span(self.from_ns, self.from_ns)
        return Span(
            max(self.from_ns, spans[0][0]),
            max(min(self.read_to_ns, spans[-1].to_ns), self.from_ns),
        )

    def left_out(self, samples: Mapping[str, int] | None = None) -> list[str]:
        """In words: what of the window is not in the answer, and the weight of samples that are
        not, by why.
        """
        return [
            *self._outside(),
            *self._describe_gaps(),
            *(f"{weight} samples {why}" for why, weight in (samples or {}).items()),
        ]

    def _stops_at(self, start_ns: int) -> bool:
        if self._limit.is_over():
            self._is_stopped = True
            self.read_to_ns = min(self.read_to_ns, start_ns)
        return self._is_stopped

    def _ask(
        self, segment: Segment, question: Callable[[SegmentReader], Answer]
    ) -> tuple[SegmentReader, Answer]:
        try:
            reader = self._catalog.reader(segment)
            return reader, question(reader)
        except SegmentGoneError:
            self._catalog.refresh()
            start = segment.path.name.split(".live")[0]
            again = next(
                (other for other in self._catalog.segments if other.path.name == start), None
            )
            if again is None:
                raise
            reader = self._catalog.reader(again)
            return reader, question(reader)

    def _take_in(self, reader: SegmentReader) -> None:
        window = self.from_ns, self.to_ns
        first_ns, last_ns = reader.span
        if overlaps(window, first_ns, last_ns):
            self.spans.append(Span(first_ns, last_ns + 1))
        self.gaps += [
            gap
            for gap in reader.gaps()
            if gap.table in self._tables and overlaps(window, *_ends(gap))
        ]

    def _outside(self) -> Iterator[str]:
        if self._is_stopped:
            yield (
                f"the time limit of {self._limit.seconds:g} s:"
                f" {_words(self.read_to_ns, self.to_ns)} was not read"
            )
        spans = merge(self.spans, _HOLE_NS)
        if not spans:
            if not self._is_stopped:
                yield f"{_words(self.from_ns, self.to_ns)}: nothing was recorded"
            return
        if spans[0][0] - self.from_ns > _EDGE_NS:
            yield f"{_words(self.from_ns, spans[0][0])}: the recording begins after it"
        for (_, end_ns), (start_ns, _) in pairwise(spans):
            yield f"{_words(end_ns, start_ns)}: not in the recording"
        if self.read_to_ns - spans[-1].to_ns > _EDGE_NS and not self._is_stopped:
            yield f"{_words(spans[-1][1], self.to_ns)}: the recording ends before it"

    def _describe_gaps(self) -> list[str]:
        gaps = merge_gaps(self.gaps, _HOLE_NS)
        texts = [_describe_gap(gap) for gap in gaps[:_MOST_GAPS]]
        return (
            texts
            if len(gaps) <= _MOST_GAPS
            else [*texts, f"and {len(gaps) - _MOST_GAPS} more gaps"]
        )


def _ends(gap: Gap) -> Span:
    return Span(gap.from_ns, gap.to_ns)


def _without(stretch: Span, hole: Span) -> list[Span]:
    return [
        Span(a, b)
        for a, b in ((stretch[0], min(stretch[1], hole[0])), (max(stretch[0], hole[1]), stretch[1]))
        if b > a
    ]


def _words(from_ns: int, to_ns: int) -> str:
    first, last = format_moment(from_ns), format_moment(to_ns)
    return first if first == last else f"{first} to {last}"


def _describe_gap(gap: Gap) -> str:
    core = f", core {gap.cpu}" if gap.cpu is not None else ""
    lost = f", {gap.lost} lost" if gap.lost else ""
    return f"{_words(gap.from_ns, gap.to_ns)}: {gap.cause}{core}{lost}"
