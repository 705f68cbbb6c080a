"""The push loop: makes batches of what is new, incidents of the ledger first, has the evidence of
pinned windows packed, sends what waits, and sleeps.

Whatever goes wrong outside (collector, network, disk) costs time, then room in the spool, then a
gap; never the process.
"""

import contextlib
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from necroscope.analysis.report import Incident
from necroscope.fleet.lake_tables import MERGED_CAUSE
from necroscope.fleet.protocol import Columns
from necroscope.model.span import Span
from necroscope.model.units import NS_PER_S
from necroscope.outlets.push.alarms import Alarms
from necroscope.outlets.push.batches import BatchMaker, PreparedBatch, last_time_ns
from necroscope.outlets.push.cursor import Loss
from necroscope.outlets.push.deaths_elsewhere import new_deaths, noted, window_line
from necroscope.outlets.push.delivery import Delivery
from necroscope.outlets.push.evidence import (
    EvidenceProcess,
    WindowDue,
    WindowEvidence,
    next_due,
    note,
)
from necroscope.outlets.push.growth import Growth
from necroscope.outlets.push.incident_rows import MOST_INCIDENTS, episode_rows, incident_rows
from necroscope.outlets.push.push_state import PushState
from necroscope.outlets.push.sender import PushOutcome
from necroscope.segment.sealed_reader import SegmentGoneError
from necroscope.store.query import Store
from necroscope.verdicts.entry import IncidentState, LedgerEntry
from necroscope.verdicts.ledger import Ledger

_MINUTE_S: Final = 60.0
_AGAIN_S: Final = 5.0
_LOOK_S: Final = 1.0
# An incident is with the collector soon after it is in the ledger.
_VERDICTS_S: Final = 5.0
# How far the ledger may be behind the recording: evidence waits for it.
_LEDGER_BEHIND_NS: Final = 90 * NS_PER_S
# This many are made, or sent, before the other is looked at again.
_AT_ONCE: Final = 20
# Without --follow: how long a collector may be away.
_PATIENCE_S: Final = 60.0


class Pusher:
    """One recording to one collector. `clock` and `sleep` are the machine's, but for tests;
    `keep_window` gets lines for the recorder, which pins what they ask for.
    """

    def __init__(
        self,
        recording: Path,
        state: PushState,
        delivery: Delivery,
        node: str,
        labels: dict[str, str],
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        keep_window: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.rows: Counter[str] = Counter()
        self._recording = recording
        self._state = state
        self._delivery = delivery
        self._clock = clock
        self._sleep = sleep
        self._keep_window = keep_window
        self._store = Store.open(recording)
        self._maker = BatchMaker(node, labels, state.ledger)
        self._growth = Growth(clock)
        self._ledger = Ledger(recording)
        self._evidence = EvidenceProcess(recording, state.spool.directory / "evidence", clock)
        self._alarms = Alarms(clock)
        self._next_make_s = 0.0

    def close(self) -> None:
        self._evidence.close()
        self._delivery.close()

    def turn(self) -> float:
        """Do what is due; returns after how many seconds to come again."""
        with contextlib.suppress(
            SegmentGoneError
        ):  # sealed or removed just now: the next turn lists what there is
            if self._clock() >= self._next_make_s:
                self._next_make_s = self._clock() + _AGAIN_S
                if self._make_live():
                    self._next_make_s = self._clock() + _MINUTE_S
            self._make_urgent()
            self._make_verdicts()
            self._pack(is_ended=False)
        is_free = self._delivery.send(_AT_ONCE)
        self._note_deaths()
        wait_s = min(_VERDICTS_S, max(0.0, self._next_make_s - self._clock()))
        wait_s = _LOOK_S if self._evidence.is_busy else wait_s
        if self._delivery.waiting:
            wait_s = min(wait_s, 0.0 if is_free else self._delivery.pause_s)
        return wait_s

    def finish(self, seconds: float) -> None:
        """The recording ends: what is new goes to the spool, and as much of it to the collector as
        the time allows.
        """
        ends_s = self._clock() + seconds
        self._store.catalog.refresh()
        self.make(is_ended=True, most=_AT_ONCE)
        while self._delivery.waiting and self._clock() < ends_s and self._delivery.send(_AT_ONCE):
            continue

    def push_all(self) -> bool:
        """A recording that has ended: all of it, with verdicts. False if the collector did not take
        it; the spool has it.
        """
        while True:
            if not self._send_all():
                return False
            if not self.make(is_ended=True, most=_AT_ONCE):
                break
        self._judge_whole()
        while self._make_verdicts():
            continue
        while self._pack(is_ended=True):
            self._evidence.wait(_LOOK_S)
            if not self._send_all():
                return False
        if self._state.cursor.losses and self._store.catalog.segments:
            self._keep(self._maker.of_losses(self._store, self._state.cursor))
        return self._send_all()

    def make(self, *, is_ended: bool, most: int, is_urgent: bool = False) -> int:
        """Batches of all that is new, at most this many; returns how many."""
        count = 0
        for _ in range(most):
            closed_through = self._state.cursor.closed_through
            try:
                made = self._maker.next(
                    self._store, self._state.cursor, is_ended=is_ended, is_urgent=is_urgent
                )
                if made is None:
                    break
                self._keep(made)
                count += 1
            except SegmentGoneError:
                self._state.undo()  # sealed or removed just now: once more, with what there is
            except OSError as error:
                # The recording still holds it: once there is room, it is made again.
                self._state.undo()
                self._spool_trouble(error)
                break
            if self._state.cursor.closed_through != closed_through:
                self._store = Store.open(
                    self._recording
                )  # what it knows of segments that are done goes with it
        return count

    def _note_deaths(self) -> None:
        """Jobs of ours that died on other nodes: the minutes around it are kept here as well."""
        deaths = self._delivery.take_deaths()
        if not deaths:
            return
        with contextlib.suppress(SegmentGoneError):
            self._store.catalog.refresh()
            new = new_deaths(self._store, self._state.cursor.job_deaths, deaths)
            if not new:
                return
            cursor = self._state.cursor.copy()
            cursor.job_deaths = noted(cursor.job_deaths, new)
            try:
                self._state.keep_cursor(cursor)
            except OSError as error:
                self._spool_trouble(error)
                return
            for at_ns in sorted(set(new.values())):
                self._keep_window(window_line(at_ns))
            self._alarms.ring()

    def _make_urgent(self) -> None:
        """What an alarm reports does not wait for its minute; its last rows come seconds later."""
        if self._alarms.is_due(self._recording):
            self.make(is_ended=False, most=1, is_urgent=True)

    def _make_live(self) -> bool:
        """Of a recording that grows, whole minutes; of one that has come to rest, also what is left
        of the last.
        """
        self._store.catalog.refresh()
        if not self._store.catalog.segments:
            return False
        is_still, is_news = self._growth.observe(last_time_ns(self._store))
        if is_still and not is_news:
            return False
        return self.make(is_ended=is_still, most=_AT_ONCE) > 0

    def _judge_whole(self) -> None:
        """A recording without a ledger that covers it, in memory; the same each time it is sent."""
        from necroscope.verdicts.changes import Judgement, changes  # noqa: PLC0415
        from necroscope.verdicts.reading import read_report  # noqa: PLC0415 - large, and only here

        ledger, span = self._ledger, self._store.span()
        ledger.refresh()
        if not self._store.catalog.segments or ledger.covers(span[0]):
            return
        try:
            found = read_report(self._store).wrong
        except Exception as error:  # noqa: BLE001 - all else is sent all the same
            self._delivery.tell(f"the recording was not judged: {error}")
            return
        judgement = Judgement(*span, is_live=False, incidents=found)
        ledger.take(changes(ledger.entries.values(), judgement, ledger.revision))

    def _make_verdicts(self) -> bool:
        """What is new or changed in the ledger since the last that was sent; False if nothing."""
        self._ledger.refresh()
        known = [
            entry
            for entry in self._ledger.entries.values()
            if entry.revision > self._state.cursor.revision
        ]
        news = sorted(known, key=lambda entry: entry.revision)[:MOST_INCIDENTS]
        if not news or not self._store.catalog.segments:
            return False
        incidents = [_sent(entry) for entry in news]
        over = [entry.incident for entry in news if entry.state is IncidentState.CLOSED]
        cursor = self._state.cursor.copy()
        cursor.revision = news[-1].revision
        span = min(one.from_ns for one in incidents), max(one.to_ns for one in incidents) + 1
        tables = {
            "incidents": _columns(incident_rows(incidents, None, time.time_ns())),
            "episodes": _columns(episode_rows(over)),
        }
        try:
            self._keep(self._maker.of_verdicts(self._store, cursor, Span(*span), tables))
        except OSError as error:
            self._spool_trouble(error)
            return False
        return True

    def _pack(self, *, is_ended: bool) -> bool:
        """Take in evidence that is there, begin with the next window that is due; False if there is
        none.
        """
        packed = self._evidence.take()
        if packed is not None:
            self._keep_evidence(packed)
        if self._evidence.is_busy:
            return True
        due = self._due(is_ended=is_ended or self._growth.is_still)
        if due is None:
            return False
        try:
            self._evidence.start(due)
        except OSError as error:
            self._spool_trouble(error)
            return False
        return True

    def _due(self, *, is_ended: bool) -> WindowDue | None:
        segments = self._store.catalog.segments
        if not segments:
            return None
        last_ns = last_time_ns(self._store) - (0 if is_ended else _LEDGER_BEHIND_NS)
        recorded = self._store.catalog.reader(segments[0]).span[0], last_ns
        return next_due(self._store.pins(), self._state.cursor.packed, recorded, is_ended=is_ended)

    def _keep_evidence(self, found: WindowEvidence) -> None:
        """The bundle first: a verdict must not speak of evidence that may never come."""
        span = found.due.span
        try:
            if found.bundle is not None and found.bundle_name is not None:
                self._state.keep_bundle(found.bundle_name, self._maker.node, span, found.bundle)
            cursor = self._state.cursor.copy()
            note(cursor.packed, found.due, self._store.pins())
            if found.trouble is not None:
                self._delivery.tell(found.trouble)
                cursor.note_loss(Loss(*span, found.trouble, "incidents"))
            tables: dict[str, Columns] = {
                "incidents": _columns(found.incidents),
                "episodes": _columns(found.episodes),
            }
            if found.incidents or found.episodes or found.trouble:
                self._keep(self._maker.of_verdicts(self._store, cursor, span, tables))
            else:
                self._state.keep_cursor(cursor)
        except OSError as error:
            self._spool_trouble(error)

    def _keep(self, made: PreparedBatch) -> None:
        dropped = self._state.dropped
        self._state.keep(made)
        self.rows.update(
            {table: len(columns["time"]) for table, columns in made.batch.tables.items()}
        )
        if self._state.dropped > dropped:
            self._delivery.trouble(
                f"the spool is full: the oldest of {self._delivery.waiting} entries go"
            )

    def _spool_trouble(self, error: OSError) -> None:
        self._delivery.trouble(
            f"cannot write to the spool {self._state.spool.directory}: {error.strerror}"
        )

    def _send_all(self) -> bool:
        """With patience: False when nothing was taken for a minute, or nothing ever will be."""
        taken_s = self._clock()
        while self._delivery.waiting:
            if self._delivery.send(_AT_ONCE):
                taken_s = self._clock()
                continue
            answer = self._delivery.last_answer
            pause_s = self._delivery.pause_s
            if (
                answer and answer.outcome is PushOutcome.DENIED
            ) or self._clock() + pause_s - taken_s > _PATIENCE_S:
                return False
            self._sleep(pause_s)
        return True


def _columns(rows: list[dict[str, Any]]) -> Columns:
    return {name: [row[name] for row in rows] for name in rows[0]} if rows else {}


def _sent(entry: LedgerEntry) -> Incident:
    """As the lake gets it: what was sent before and is part of another now is taken back."""
    if entry.state is not IncidentState.MERGED:
        return entry.incident
    title = f"part of {entry.merged_into}"
    verdict = replace(entry.incident.verdict, cause=MERGED_CAUSE, title=title)
    return replace(entry.incident, verdict=verdict)
