"""What a push must not lose: cursor, facts and spool, which change together and in an order that
survives a kill at any moment.

The entry first, then the facts it told, then the cursor. What goes unsent is noted as a loss before
it is removed.
"""

import gzip
import json
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any, Final

from necroscope.errors import CorruptData
from necroscope.fleet.protocol import encode
from necroscope.model.span import Span
from necroscope.outlets.push.batches import PreparedBatch
from necroscope.outlets.push.cursor import Cursor, Loss
from necroscope.outlets.push.facts import FACT_COLUMNS, FactLedger
from necroscope.outlets.push.spool import BATCH, BUNDLE, Entry, Spool

_FULL: Final = "the spool of the node was full"


class PushState:
    """`to` is the collector: for another one everything is pushed again."""

    def __init__(
        self,
        spool: Spool,
        to: str,
        tell: Callable[[str], None],
        clock_s: Callable[[], float] = time.time,
    ) -> None:
        self.spool = spool
        self.ledger = FactLedger(spool.read_facts())
        self.dropped = 0
        self.cursor = self._resume_cursor(to, int(clock_s()), tell)
        self._note()

    def keep(self, made: PreparedBatch) -> None:
        head = {
            "cursor": made.cursor.as_json(),
            "losses": [asdict(loss) for loss in made.losses],
            "has_facts": made.has_facts,
        }
        self.spool.add(made.cursor.number - 1, made.span, BATCH, head, encode(made.batch))
        if made.has_facts:
            self.spool.write_facts(self.ledger.hashes)
        self.keep_cursor(made.cursor)
        self.drop(self.spool.overflow(), _FULL)

    def keep_bundle(self, name: str, node: str, span: Span, bundle: bytes) -> None:
        """The verdicts that speak of it come after it."""
        after = self.cursor.copy()
        after.number += 1
        self.spool.add(
            self.cursor.number,
            span,
            BUNDLE,
            {"cursor": after.as_json(), "bundle": name, "node": node},
            bundle,
        )
        self.keep_cursor(after)

    def keep_cursor(self, cursor: Cursor) -> None:
        self.spool.write_cursor(cursor.as_json())
        self.cursor = cursor

    def undo(self) -> None:
        """A batch could not be kept: the facts it took are news again."""
        self.ledger.hashes = self.spool.read_facts()

    def drop(self, entries: Iterable[Entry], cause: str) -> None:
        going = list(entries)
        if not going:
            return
        for entry in going:
            self._note_lost(entry, cause)
        self._note()
        for entry in going:
            self.spool.remove(entry)
        self.dropped += len(going)

    def refuse(self, entry: Entry, cause: str) -> None:
        """Facts in it are not sent again: they would be refused again."""
        self.cursor.note_loss(Loss(entry.from_ns, entry.to_ns, cause, _table(entry)))
        self._note()
        self.spool.refuse(entry)

    def _note_lost(self, entry: Entry, cause: str) -> None:
        try:
            head, _ = self.spool.read(entry)
        except CorruptData:
            head = {"has_facts": True}
        self.cursor.note_loss(Loss(entry.from_ns, entry.to_ns, cause, _table(entry)))
        for loss in head.get("losses", ()):
            self.cursor.note_loss(Loss(**loss))
        if head.get("has_facts"):
            self.ledger.hashes.clear()
            self.cursor.forget_facts()

    def _note(self) -> None:
        self.spool.write_facts(self.ledger.hashes)
        self.spool.write_cursor(self.cursor.as_json())

    def _resume_cursor(self, to: str, now_s: int, tell: Callable[[str], None]) -> Cursor:
        """Where the last run stopped; an entry that it could not note any more is noted now."""
        cursor = None
        try:
            content = self.spool.read_cursor()
            cursor = Cursor.from_json(content) if content is not None else None
        except CorruptData as error:
            tell(f"{error.facts}: all is pushed again, which the collector reads once")
        if cursor is None or cursor.to != to:
            cursor = Cursor.new(to, now_s)
            self.ledger.hashes = {}
        newest = self.spool.entries[-1] if self.spool.entries else None
        return (
            self._adopt(newest, cursor)
            if newest is not None and newest.number >= cursor.number
            else cursor
        )

    def _adopt(self, entry: Entry, cursor: Cursor) -> Cursor:
        try:
            head, body = self.spool.read(entry)
            after = Cursor.from_json(head["cursor"])
            if after.to != cursor.to:
                raise CorruptData("the entry is for another collector")
            if entry.kind == BATCH:
                self.ledger.take(_facts(body))
            return after
        except (CorruptData, KeyError, TypeError, ValueError, OSError):
            cursor.number = entry.number + 1
            return cursor


def _facts(body: bytes) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = json.loads(gzip.decompress(body))["tables"].get(
        "facts", {name: [] for name in FACT_COLUMNS}
    )
    return found


def _table(entry: Entry) -> str:
    return "*" if entry.kind == BATCH else "bundles"
