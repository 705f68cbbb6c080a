"""`incidents.jsonl` in the recording's directory: every incident of the recording, by one writer,
for any reader.

Not a table of a segment: an incident goes on after its segment is sealed, and its verdict is made
by another process than the one that writes segments. A log of changes and not a file that is
replaced, so that a change costs its own bytes. Each line is JSON with the CRC32 of its record:

    {"crc32":"89abcdef","record":{"schema":1,"judged_by":"0.2.0 1f2e3d4c","revision":7}}
    {"crc32":"89abcdef","record":{"entry":{"state":"open","revision":7,"incident":{...},...}}}
    {"crc32":"89abcdef","record":{"judged":[FROM_NS,TO_NS],"notes":["..."]}}
    {"crc32":"89abcdef","record":{"unjudged":[FROM_NS,TO_NS],"why":"..."}}
    {"crc32":"89abcdef","record":{"attempt":[FROM_NS,TO_NS]}}
    {"crc32":"89abcdef","record":{"death":[FROM_NS,TO_NS]}}

Of several entries with one id the last is true. `unjudged` replaces what lies within it; without a
reason that was judged after all. An `attempt` without a `judged` after it killed its process. A
line without a valid checksum never happened: a torn tail is judged again, and the same stretch
gives the same ids. When most of the file is out of date it is rewritten, whole or not at all,
without incidents that the recording no longer holds.
"""

import contextlib
import json
import os
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from necroscope.model.span import Span
from necroscope.model.units import NS_PER_S, format_moment
from necroscope.segment.checksum import open_regular
from necroscope.verdicts.entry import IncidentState, LedgerEntry, take_plain
from necroscope.verdicts.rules import rules

LEDGER_FILE: Final = "incidents.jsonl"
SCHEMA: Final = 1
_HEAD: Final = '{{"crc32":"{:08x}","record":'
_HEAD_BYTES: Final = len(_HEAD.format(0))
_TAIL: Final = b"}\n"
# Larger than any ledger that is kept in bounds.
_MOST_BYTES: Final = 32 << 20
_LONGEST_LINE: Final = 1 << 20
MOST_NOTES: Final = 20


class UnjudgedStretch(NamedTuple):
    """Incidents in it are not in the ledger; without `why` it was judged after all."""

    span: Span
    why: str = ""

    def __str__(self) -> str:
        from_ns, to_ns = self.span
        return f"{format_moment(from_ns)} to {format_moment(to_ns)} was not judged: {self.why}"


@dataclass(slots=True)
class Ledger:
    """What the ledger says now. `judged` is the stretch whose incidents are all in it but for what
    is `unjudged`; `attempt` is what is being judged, `deaths` are attempts that had no end.
    `revision` is the highest that any entry ever had.
    """

    directory: Path
    entries: dict[str, LedgerEntry] = field(default_factory=dict)
    judged: Span | None = None
    notes: tuple[str, ...] = ()
    unjudged: tuple[UnjudgedStretch, ...] = ()
    attempt: Span | None = None
    deaths: tuple[Span, ...] = ()
    revision: int = 0
    judged_by: str | None = None
    _file: tuple[int, int] = (0, 0)

    @classmethod
    def open(cls, directory: Path) -> Self:
        ledger = cls(directory)
        ledger.refresh()
        return ledger

    def refresh(self) -> list[LedgerEntry]:
        """Entries that are new or changed since the last look; no file, no entries."""
        path = self.directory / LEDGER_FILE
        try:
            if path.is_symlink():
                return []
            with open_regular(path) as file:
                found = os.fstat(file.fileno())
                inode, offset = self._file
                if found.st_ino != inode or found.st_size < offset:
                    offset = 0
                if found.st_size == offset or found.st_size > _MOST_BYTES:
                    return []
                file.seek(offset)
                data = file.read(found.st_size - offset)
        except OSError:
            return []
        whole = data.rfind(b"\n") + 1
        self._file = found.st_ino, offset + whole
        return self._take(list(records(data[:whole])), is_new_file=offset == 0)

    def _take(self, found: Sequence[Any], *, is_new_file: bool) -> list[LedgerEntry]:
        if is_new_file:
            before, self.entries, self.judged, self.notes = self.entries, {}, None, ()
            self.unjudged, self.attempt, self.deaths, self.judged_by = (), None, (), None
            head = found[0] if found and isinstance(found[0], dict) else {}
            if head.get("schema") != SCHEMA:
                return []
            self.judged_by = str(head.get("judged_by"))
            with contextlib.suppress(TypeError, ValueError):
                self.revision = max(self.revision, take_plain(int, head.get("revision", 0)))
        else:
            before = dict(self.entries)
        for record in found:
            self._note(record)
        return [entry for entry in self.entries.values() if before.get(entry.id) != entry]

    def _note(self, record: Any) -> None:
        with contextlib.suppress(KeyError, TypeError, ValueError):
            if "entry" in record:
                entry = LedgerEntry.from_json(record["entry"])
                self.entries[entry.id] = entry
                self.revision = max(self.revision, entry.revision)
            elif "judged" in record:
                self.judged, self.attempt = _span(record["judged"]), None
                self.notes = tuple(map(str, record["notes"]))[:MOST_NOTES]
            elif "unjudged" in record:
                self._note_unjudged(_span(record["unjudged"]), str(record["why"]))
            elif "attempt" in record:
                self.attempt = _span(record["attempt"])
            elif "death" in record:
                self.deaths = (*self.deaths, _span(record["death"]))[-MOST_NOTES:]

    def _note_unjudged(self, span: Span, why: str) -> None:
        kept = [one for one in self.unjudged if not includes(span, one.span)]
        new = [UnjudgedStretch(span, why)] if why else []
        self.unjudged = tuple([*kept, *new][-MOST_NOTES:])

    def covers(self, first_ns: int) -> bool:
        """Whether all is in it from there to where it reaches, as today's rules judge."""
        is_begun = self.judged is not None and self.judged[0] <= first_ns + NS_PER_S
        return is_begun and self.judged_by == rules()

    def take(self, entries: Sequence[LedgerEntry]) -> None:
        """For a ledger that is in memory only."""
        self.entries |= {entry.id: entry for entry in entries}

    def incidents(self) -> list[LedgerEntry]:
        """In order of time, without those that became part of another."""
        own = [entry for entry in self.entries.values() if entry.state is not IncidentState.MERGED]
        return sorted(own, key=lambda entry: entry.incident.from_ns)


def includes(span: Span, other: Span) -> bool:
    return span.from_ns <= other.from_ns and other.to_ns <= span.to_ns


def _span(content: Sequence[object]) -> Span:
    from_ns, to_ns = (take_plain(int, one) for one in content)
    return Span(from_ns, to_ns)


def line(record: object) -> bytes:
    return _with_checksum(json.dumps(record, separators=(",", ":")).encode())


def records(data: bytes) -> Iterator[Any]:
    """The valid ones."""
    for one in data.split(b"\n"):
        body = one[_HEAD_BYTES:-1]
        if len(one) <= _LONGEST_LINE and one + b"\n" == _with_checksum(body):
            with contextlib.suppress(ValueError, RecursionError):
                yield json.loads(body)


def _with_checksum(body: bytes) -> bytes:
    return _HEAD.format(zlib.crc32(body)).encode() + body + _TAIL
