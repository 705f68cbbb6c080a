"""Who writes the ledger: one process at a time, found out by a lock that ends with its holder."""

import os
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, Final

from necroscope.model.span import Span
from necroscope.segment.checksum import write_whole
from necroscope.segment.lock import is_locked, take_lock
from necroscope.verdicts.entry import LedgerEntry
from necroscope.verdicts.ledger import (
    LEDGER_FILE,
    MOST_NOTES,
    SCHEMA,
    Ledger,
    UnjudgedStretch,
    line,
)
from necroscope.verdicts.rules import rules

LOCK_FILE: Final = "verdicts.lock"
MOST_ENTRIES: Final = 2000
_REWRITE_BYTES: Final = 1 << 20
# Of entries: a file of twice this size, and what one round adds, is still read.
_KEPT_BYTES: Final = 6 << 20


class LedgerWriter:
    """Held by one process at a time. What it appends is durable when it returns."""

    def __init__(self, directory: Path) -> None:
        """BlockingIOError if another process keeps the ledger."""
        self._lock = os.open(directory / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            take_lock(self._lock)
            self.ledger = Ledger.open(directory)
            self._path = directory / LEDGER_FILE
            if self.ledger.attempt is not None:
                self.ledger.deaths = (*self.ledger.deaths, self.ledger.attempt)[-MOST_NOTES:]
            if self.ledger.judged_by != rules():
                # The entries stay, and with them the ids, but all is judged again.
                self.ledger.judged = None
            self.rewrite(0)
        except OSError:
            os.close(self._lock)
            raise

    def close(self) -> None:
        os.close(self._lock)

    def attempt(self, span: Span) -> None:
        """Before it is judged: should that end this process, the next one knows."""
        with self._path.open("ab") as file:
            file.write(line({"attempt": span}))

    def append(
        self,
        entries: Sequence[LedgerEntry],
        judged: Span | None = None,
        notes: Sequence[str] = (),
        unjudged: Sequence[UnjudgedStretch] = (),
    ) -> None:
        changes: list[dict[str, Any]] = [{"entry": entry.as_json()} for entry in entries]
        changes += [{"unjudged": one.span, "why": one.why} for one in unjudged]
        if judged is not None:
            changes.append({"judged": judged, "notes": list(notes)[:MOST_NOTES]})
        with self._path.open("ab") as file:
            file.write(b"".join(map(line, changes)))
            file.flush()
            if entries:
                os.fdatasync(file.fileno())
        self.ledger.refresh()

    def rewrite_if_large(self, first_ns: int) -> None:
        """`first_ns` is where the recording begins now."""
        size = self._path.stat().st_size
        if size > 2 * self._size_bytes + _REWRITE_BYTES:
            self.rewrite(first_ns)

    def rewrite(self, first_ns: int) -> None:
        kept = [one for one in self.ledger.entries.values() if one.incident.to_ns >= first_ns]
        kept = sorted(kept, key=lambda one: one.incident.to_ns)[-MOST_ENTRIES:]
        lines = [line({"entry": entry.as_json()}) for entry in reversed(kept)]
        sizes = accumulate(map(len, lines))
        newest = [one for one, size in zip(lines, sizes, strict=True) if size <= _KEPT_BYTES]
        ledger = self.ledger
        changes: list[dict[str, Any]] = [
            {"unjudged": one.span, "why": one.why}
            for one in ledger.unjudged
            if one.span.to_ns >= first_ns
        ]
        changes += [{"death": one} for one in ledger.deaths]
        if ledger.judged is not None:
            changes.append({"judged": ledger.judged, "notes": list(ledger.notes)})
        head = line({"schema": SCHEMA, "judged_by": rules(), "revision": ledger.revision})
        data = b"".join([head, *reversed(newest), *map(line, changes)])
        self._size_bytes = len(data)
        write_whole(self._path, data)
        self.ledger.refresh()


def is_kept(directory: Path) -> bool:
    """Whether a process keeps the ledger now."""
    return is_locked(directory / LOCK_FILE)
