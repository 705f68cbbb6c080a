"""Rows of one segment that were not pushed yet: events, gaps, ends and members of jobs. Each has a
key by which it is known again.

By segment and not by time, because rows come late: a gap is written when it ends, a daemon reports
what was minutes ago.
"""

import contextlib
import hashlib
import json
import zlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from necroscope.errors import CorruptData
from necroscope.fleet.protocol import EARLIEST_NS, LATEST_NS
from necroscope.outlets.push.cursor import Cursor, SegmentProgress
from necroscope.outlets.push.jobs import unit_ends
from necroscope.segment.journal import JOURNAL_FILE, SEGMENT_NOTE
from necroscope.segment.journal_reader import Hole, read_blocks
from necroscope.segment.manifest import read_manifest
from necroscope.segment.reader import SegmentReader
from necroscope.segment.stored_values import take_text

ALL_TIME: Final = (-(1 << 63), (1 << 63) - 1)
_EVENT_COLUMNS: Final = (
    "time",
    "kind",
    "cpu",
    "device",
    "queue",
    "pid",
    "comm",
    "severity",
    "by_kernel",
    "message",
)
_UNSENT: Final = ("sequence", "pattern", "fields")
# Microseconds of thirty years and these fit into 63 bits.
_EVENT_BITS: Final = 12
# A collector takes 8 MiB of JSON at once.
_MOST: Final = {"events": 2000, "gaps": 1000, "jobs": 1000, "job_members": 2000}
_MOST_CHARACTERS: Final = 1_500_000
_RAY_ENDS: Final = {"ray_job_failed": "failure", "ray_job_succeeded": "success"}

Row = dict[str, Any]


@dataclass(slots=True)
class NewRows:
    """By table, with the keys under which they are noted once they are in a batch; `is_cut`: there
    are more.
    """

    rows: dict[str, list[Row]] = field(default_factory=dict)
    keys: list[str] = field(default_factory=list)
    sequences: list[int] = field(default_factory=list)
    is_cut: bool = False
    characters: int = 0

    def add(self, table: str, row: Row, key: str) -> bool:
        """False if the batch has no room for it."""
        rows = self.rows.setdefault(table, [])
        if len(rows) >= _MOST[table] or self.characters >= _MOST_CHARACTERS:
            self.is_cut = True
            return False
        rows.append(row)
        self.characters += sum(len(value) for value in row.values() if isinstance(value, str))
        self.keys.append(key)
        return True


def new_rows(
    reader: SegmentReader, boot_id: str, cursor: Cursor, members: Iterable[Row] = ()
) -> NewRows:
    """`members` are those of jobs, as `job_members` has them of this segment."""
    found = NewRows()
    known = set(cursor.open.get(reader.path.name.removesuffix(".live"), SegmentProgress()).pushed)
    _add_events(found, reader, boot_id, known, cursor.known_sequences(boot_id))
    for gap in reader.gaps():
        if reader.is_live and gap.from_ns == gap.to_ns:
            continue  # perhaps only a frame that is being written
        row = {"time": gap.from_ns, "end": gap.to_ns, "table": gap.table, "cause": gap.cause}
        _add(found, "gaps", row, known)
    for row in unit_ends(reader):
        _add(found, "jobs", row, known)
    for row in members:
        _add(found, "job_members", row, known)
    return found


def boot_id_of(path: Path) -> str:
    """The boot in which a segment was recorded; `unknown` where nothing tells it."""
    with contextlib.suppress(OSError, CorruptData, KeyError, StopIteration):
        if not path.name.endswith(".live"):
            return read_manifest(path).boot_id or "unknown"
        frame = next(read_blocks(path / JOURNAL_FILE))
        if not isinstance(frame, Hole) and frame.header.name == SEGMENT_NOTE:
            return take_text(frame.note(), "boot_id") or "unknown"
    return "unknown"


def _add_events(
    found: NewRows, reader: SegmentReader, boot_id: str, known: set[str], sequences: set[int]
) -> None:
    rows = reader.read("events", *ALL_TIME, (*_EVENT_COLUMNS, *_UNSENT)).to_pylist()
    at_once: Counter[int] = Counter()
    for row in rows:
        sequence, pattern, fields = (row.pop(name) for name in _UNSENT)
        if sequence is None:
            # No log numbers it: its time does, counted on where several have the same; below zero,
            # where no log counts.
            row["source_sequence"] = -(row["time"] + at_once[row["time"]])
            at_once[row["time"]] += 1
        else:
            sequence = row["source_sequence"] = _number(sequence, pattern, row["message"])
            if sequence in sequences:
                continue
            sequences.add(sequence)
        if _add(found, "events", row | {"boot_id": boot_id}, known) and sequence is not None:
            found.sequences.append(sequence)
        job = _ended_job(row, fields)
        if job is not None:
            _add(found, "jobs", job, known)


def _number(sequence: int, pattern: str | None, message: str) -> int:
    """One of an event in its boot: the record's number in the log, and which event of it this is.

    A record may match several patterns, and where the log keeps no numbers, records of one
    microsecond share theirs. A second reading of the record finds the same.
    """
    return sequence << _EVENT_BITS | zlib.crc32(f"{pattern} {message}".encode()) >> 32 - _EVENT_BITS


def _ended_job(event: Row, fields: str | None) -> Row | None:
    """An end that an event reports: a unit that was restarted after a failure, a Ray job that is
    over.
    """
    if event["kind"] not in ("unit_restart", *_RAY_ENDS):
        return None
    try:
        values = json.loads(fields or "{}")
        outcome = _RAY_ENDS.get(event["kind"])
        if outcome is not None:
            name = values.get("submission") or values["job"]
            return {
                "time": event["time"],
                "kind": "ray_job",
                "name": name,
                "outcome": outcome,
                "detail": event["message"],
            }
        if values.get("result") in (None, "success"):
            return None
        return {
            "time": event["time"],
            "kind": "unit",
            "name": values["unit"],
            "outcome": "failure",
            "detail": event["message"],
        }
    except (ValueError, KeyError, AttributeError):
        return None


def _add(found: NewRows, table: str, row: Row, known: set[str]) -> bool:
    """A clock that was never set gives times that no collector takes: such rows are left out."""
    if not EARLIEST_NS <= row["time"] < LATEST_NS:
        return False
    key = _key(table, row)
    if key in known:
        return False
    known.add(key)
    return found.add(table, row, key)


def _key(table: str, row: Row) -> str:
    identity = row["source_sequence"] if table == "events" else _identity(row)
    return hashlib.blake2b(f"{table} {identity}".encode(), digest_size=8).hexdigest()


def _identity(row: Row) -> list[tuple[str, Any]]:
    """All but when it was analysed: the same again is not news."""
    return sorted(item for item in row.items() if item[0] != "analysed_ns")
