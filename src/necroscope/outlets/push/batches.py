"""Batches out of a recording: what came since the cursor, one minute at a time, or five while there
is more behind it.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from necroscope import __version__
from necroscope.fleet.protocol import EARLIEST_NS, NAME, Batch, Columns
from necroscope.model.core_shares import MINUTE_NS
from necroscope.model.span import Span
from necroscope.outlets.push.cursor import Cursor, Loss, SegmentProgress
from necroscope.outlets.push.facts import FactLedger
from necroscope.outlets.push.gauges import gauge_rows
from necroscope.outlets.push.growth import Journals
from necroscope.outlets.push.job_members import member_rows
from necroscope.outlets.push.jobs import stakeout_ends
from necroscope.outlets.push.minute_stacks import stack_minutes
from necroscope.outlets.push.minute_summary import core_minutes
from necroscope.outlets.push.segment_rows import boot_id_of, new_rows
from necroscope.segment.recording import LIVE, segment_start_ns
from necroscope.segment.sealed_reader import SegmentGoneError
from necroscope.segment.window import overlaps
from necroscope.store.catalog import Segment
from necroscope.store.query import Store

# The journal is flushed every few seconds; a minute is over when what comes after it is there.
LAG_NS: Final = 8_000_000_000
_MOST_AT_ONCE_NS: Final = 5 * MINUTE_NS
_MOST_SEGMENTS: Final = 3
_UNKNOWN: Final = "unknown"


@dataclass(frozen=True, slots=True)
class PreparedBatch:
    """A batch, the time it speaks for, the cursor as it is after it, and the losses that it tells
    of.
    """

    batch: Batch
    span: Span
    cursor: Cursor
    losses: list[Loss]

    @property
    def has_facts(self) -> bool:
        return "facts" in self.batch.tables


class BatchMaker:
    """Turns the store into batches. It changes no cursor: the one in what it made is the caller's
    to keep.
    """

    def __init__(
        self,
        node: str,
        labels: dict[str, str],
        ledger: FactLedger,
        clock_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self.node = node
        self._labels = labels
        self._ledger = ledger
        self._clock_ns = clock_ns
        self._is_cut = False
        self._journals = Journals()

    def next(
        self, store: Store, cursor: Cursor, *, is_ended: bool, is_urgent: bool = False
    ) -> PreparedBatch | None:
        """The next batch, None if nothing is new; of a recording that has not ended, only with
        whole minutes, unless it is urgent.
        """
        store.catalog.refresh()
        if not store.catalog.segments:
            return None
        cursor = cursor.copy()
        span = self._minutes(store, cursor, is_ended=is_ended)
        if span[0] == span[1] and not (is_ended or is_urgent or self._is_cut):
            return None
        tables: dict[str, Columns] = {}
        if span[1] > span[0]:
            tables["core_minutes"] = core_minutes(store, *span)
            tables["stack_minutes"] = stack_minutes(store, *span)
            _append(tables, "gauges", gauge_rows(store, span, cursor.gauges))
        self._is_cut = not self._add_segment_rows(store, cursor, span[1], tables)
        self._add_stakeout(store, cursor, tables)
        tables = {name: columns for name, columns in tables.items() if columns.get("time")}
        if not tables and span[0] == span[1]:
            return None
        return self._prepare(store, cursor, span, _recorded_extent(store, span), tables)

    def of_losses(self, store: Store, cursor: Cursor) -> PreparedBatch:
        """A batch only to tell what was lost, where no other follows."""
        return self.of_verdicts(store, cursor, Span(cursor.seen_to_ns, cursor.seen_to_ns), {})

    def of_verdicts(
        self, store: Store, cursor: Cursor, span: Span, tables: dict[str, Columns]
    ) -> PreparedBatch:
        """A batch of verdicts on a window: it covers no time that other batches do not."""
        known = {name: columns for name, columns in tables.items() if columns.get("time")}
        return self._prepare(
            store, cursor.copy(), span, Span(cursor.seen_to_ns, cursor.seen_to_ns), known
        )

    def _minutes(self, store: Store, cursor: Cursor, *, is_ended: bool) -> Span:
        """The minutes to summarise now; the cursor goes behind them."""
        segments = store.catalog.segments
        _follow_clock(store, cursor)
        first_ns = store.catalog.reader(segments[0]).span[0]
        if cursor.seen_to_ns and first_ns > cursor.seen_to_ns + MINUTE_NS:
            cursor.note_loss(
                Loss(cursor.seen_to_ns, first_ns, "nothing of it is in the recording any more")
            )
        from_ns = max(cursor.seen_to_ns, first_ns // MINUTE_NS * MINUTE_NS)
        if not _recorded_spans(store, Span(from_ns, from_ns + _MOST_AT_ONCE_NS)):
            later = [
                start_ns
                for segment in segments
                if (start_ns := segment_start_ns(segment.name)) > from_ns
            ]
            from_ns = max(from_ns, min(later, default=from_ns) // MINUTE_NS * MINUTE_NS)
        last_ns = last_time_ns(store)
        end_ns = last_ns + 1 if is_ended else (last_ns - LAG_NS) // MINUTE_NS * MINUTE_NS
        to_ns = max(from_ns, min(end_ns, from_ns // MINUTE_NS * MINUTE_NS + _MOST_AT_ONCE_NS))
        cursor.seen_to_ns = to_ns
        return Span(from_ns, to_ns)

    def _add_segment_rows(
        self, store: Store, cursor: Cursor, until_ns: int, tables: dict[str, Columns]
    ) -> bool:
        """False if the batch is full and there is more."""
        segments = store.catalog.segments
        present = {_name(segment) for segment in segments}
        cursor.open = {name: known for name, known in cursor.open.items() if name in present}
        growing = self._journals.growing(segments, cursor.left)
        waiting = [
            segment
            for segment in segments
            if not cursor.is_done(_name(segment), is_live=segment in growing)
        ]
        done = [
            segment for segment in waiting if segment not in growing and segment.from_ns <= until_ns
        ]
        for segment in [*done[:_MOST_SEGMENTS], *growing]:
            try:
                if not self._add_rows_of(
                    store, segment, cursor, tables, is_growing=segment in growing
                ):
                    return False
            except SegmentGoneError:
                break  # sealed just now: the next batch has it
        return len(done) <= _MOST_SEGMENTS

    def _add_rows_of(
        self,
        store: Store,
        segment: Segment,
        cursor: Cursor,
        tables: dict[str, Columns],
        *,
        is_growing: bool,
    ) -> bool:
        """False if the batch is full."""
        reader, boot_id = store.catalog.reader(segment), safe_name(boot_id_of(segment.path))
        known = cursor.open.setdefault(_name(segment), SegmentProgress())
        members = member_rows(store, reader, cursor.job_deaths, self._clock_ns())
        found = new_rows(reader, boot_id, cursor, members)
        facts = self._ledger.news(reader, known.facts_to_ns, self._labels)
        for table, rows in {**found.rows, "facts": facts.rows}.items():
            _append(tables, table, rows)
        known.pushed += found.keys
        known.facts_to_ns = facts.to_ns
        cursor.note_sequences(boot_id, found.sequences)
        is_cut = found.is_cut or facts.is_cut
        if not is_growing and not is_cut:
            cursor.close(_name(segment))
        return not is_cut

    def _add_stakeout(self, store: Store, cursor: Cursor, tables: dict[str, Columns]) -> None:
        for number, row in stakeout_ends(store.catalog.directory, cursor.stakeout_runs):
            _append(tables, "jobs", [row])
            cursor.stakeout_runs = number

    def _prepare(
        self, store: Store, cursor: Cursor, span: Span, observed: Span, tables: dict[str, Columns]
    ) -> PreparedBatch:
        losses, cursor.losses = cursor.losses, []
        _append(tables, "gaps", [_gap_row(loss) for loss in losses])
        newest = store.catalog.segments[-1]
        identity = store.catalog.identity
        version = identity.made_by.removeprefix("necroscope ") if identity else __version__
        cpus = store.catalog.reader(newest).cpus
        pulse = {
            "recorder_version": version,
            "cpus": cpus,
            "span_from": observed[0],
            "span_to": observed[1],
        }
        _append(tables, "pulses", [{"time": max(observed[1], EARLIEST_NS), **pulse}])
        boot_id = safe_name(boot_id_of(newest.path))
        name = f"{boot_id}-{cursor.number}"
        batch = Batch(self.node, boot_id, name, self._clock_ns(), self._labels_due(cursor), tables)
        cursor.number += 1
        return PreparedBatch(batch, span, cursor, losses)

    def _labels_due(self, cursor: Cursor) -> dict[str, str]:
        """Every label of a batch becomes a row: once per day, and when one changed."""
        labelled = f"{cursor.seen_to_ns // (1440 * MINUTE_NS)} {sorted(self._labels.items())}"
        if labelled == cursor.labelled:
            return {}
        cursor.labelled = labelled
        return self._labels


def last_time_ns(store: Store) -> int:
    """Up to when it is recorded; after a step of the clock the segment being written may not be the
    last by name.
    """
    segments = store.catalog.segments
    return max(
        store.catalog.reader(one).span[1]
        for one in [one for one in segments if one.is_live] or segments[-1:]
    )


def safe_name(name: str) -> str:
    """A name as the protocol takes it."""
    if NAME.fullmatch(name):
        return name
    cleaned = "".join(
        letter if letter.isascii() and (letter.isalnum() or letter in "._-") else "-"
        for letter in name
    )
    return cleaned[:128].strip("._-") or _UNKNOWN


def _follow_clock(store: Store, cursor: Cursor) -> None:
    """A recorder that starts after the clock was set back writes before what was pushed: those
    minutes are looked at again.
    """
    newest = max([cursor.closed_through, *cursor.open])
    for segment in store.catalog.segments:
        is_new = (
            segment.is_live
            and segment.name not in cursor.left
            and _name(segment) not in cursor.open
        )
        if is_new and _name(segment) < newest:
            start_ns = store.catalog.reader(segment).span[0]
            cursor.seen_to_ns = min(cursor.seen_to_ns, start_ns // MINUTE_NS * MINUTE_NS)


def _recorded_extent(store: Store, span: Span) -> Span:
    """What of it was recorded, from the first to the last moment."""
    spans = _recorded_spans(store, span)
    if not spans:
        return Span(span[1], span[1])
    return Span(
        max(span[0], min(start for start, _ in spans)),
        min(span[1], max(end for _, end in spans) + 1),
    )


def _recorded_spans(store: Store, window: Span) -> list[Span]:
    """Spans of the segments in a window; the kernel log, which reaches back farther, does not
    count.
    """
    spans = [Span(*store.catalog.reader(segment).span) for segment in store.catalog.within(window)]
    return [span for span in spans if overlaps(window, *span)]


def _gap_row(loss: Loss) -> dict[str, Any]:
    return {
        "time": max(loss.from_ns, EARLIEST_NS),
        "end": loss.to_ns,
        "table": loss.table,
        "cause": loss.cause,
    }


def _name(segment: Segment) -> str:
    return segment.name.removesuffix(LIVE)


def _append(tables: dict[str, Columns], table: str, rows: list[dict[str, Any]]) -> None:
    if not rows:
        return
    columns = tables.setdefault(table, {name: [] for name in rows[0]})
    for row in rows:
        for name, values in columns.items():
            values.append(row[name])
