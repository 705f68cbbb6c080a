"""The spool: batches and bundles on disk until a collector has taken them. Durable, in order, and
bounded in bytes.

    cursor.json                     how far the recording is pushed; replaced after the entry that
                                    it speaks of is durable
    facts.json                      hashes of the facts that were pushed
    NUMBER.FROM.TO.batch, .bundle   one entry each, named by its number and the time it speaks for
    refused/                        entries that the collector will never take; the last of them,
                                    for a person to look at

It lies in the recording as `.push`, which readers and retention pass by. An entry is a checksummed
head (JSON) and the body as it is sent. The head holds the cursor as it is after this entry: killed
between the two writes, the next start takes it from there and sends the very same entry. Over the
bound the oldest entries go, and the next batch carries a gap in their place.
"""

import contextlib
import fcntl
import json
import os
import re
import struct
import zlib
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from necroscope.errors import CorruptData, RecordingBusy, RecordingError
from necroscope.model.span import Span
from necroscope.segment.checksum import read_checked, write_checked, write_whole
from necroscope.segment.recording import refuse_shared

BATCH: Final = "batch"
BUNDLE: Final = "bundle"
DEFAULT_BYTES: Final = 256 << 20
_MAGIC: Final = b"NECPUSH1"
_HEAD: Final = struct.Struct("<8sII")
_NAME: Final = re.compile(r"(\d{1,20})\.(\d{1,20})\.(\d{1,20})\.(batch|bundle)")
_CURSOR: Final = "cursor.json"
_FACTS: Final = "facts.json"
_REFUSED: Final = "refused"
_MOST_REFUSED: Final = 50
_REFUSED_BYTES: Final = 16 << 20


@dataclass(frozen=True, slots=True, order=True)
class Entry:
    """A file of the spool; `from_ns` and `to_ns` are the time it speaks for."""

    number: int
    from_ns: int
    to_ns: int
    kind: str
    size_bytes: int

    @property
    def name(self) -> str:
        return f"{self.number:020d}.{self.from_ns}.{self.to_ns}.{self.kind}"


class Spool:
    """One process at a time holds it; RecordingBusy if another does."""

    def __init__(self, directory: Path, limit_bytes: int = DEFAULT_BYTES) -> None:
        self.directory = directory
        self._limit_bytes = limit_bytes
        try:
            directory.mkdir(mode=0o700, exist_ok=True)
            refuse_shared(directory)
            self._lock = os.open(directory, os.O_RDONLY)
        except OSError as error:
            hint = "choose a directory you may write to with --spool"
            raise RecordingError(
                f"cannot make a spool in {directory}: {error.strerror}", hint
            ) from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            raise RecordingBusy(
                f"another process pushes from {directory}", "stop it first"
            ) from None
        self.entries: deque[Entry] = deque(sorted(_list_entries(directory)))

    def close(self) -> None:
        os.close(self._lock)

    @property
    def refused(self) -> Path:
        return self.directory / _REFUSED

    @property
    def size_bytes(self) -> int:
        return sum(entry.size_bytes for entry in self.entries)

    def read_cursor(self) -> Any:
        """None if there is none; CorruptData if it is damaged."""
        with contextlib.suppress(FileNotFoundError):
            return read_checked(self.directory / _CURSOR)
        return None

    def write_cursor(self, content: Any) -> None:
        write_checked(self.directory / _CURSOR, content)

    def read_facts(self) -> dict[str, str]:
        """Nothing if it is damaged: then all facts are new."""
        with contextlib.suppress(OSError, CorruptData, AttributeError):
            return {
                str(key): str(value) for key, value in read_checked(self.directory / _FACTS).items()
            }
        return {}

    def write_facts(self, facts: dict[str, str]) -> None:
        write_checked(self.directory / _FACTS, facts)

    def add(self, number: int, span: Span, kind: str, head: Any, body: bytes) -> Entry:
        """Durable when it returns."""
        text = json.dumps(head, separators=(",", ":")).encode()
        rest = struct.pack("<I", len(text)) + text + body
        entry = Entry(number, *span, kind, _HEAD.size + len(rest))
        write_whole(
            self.directory / entry.name, _HEAD.pack(_MAGIC, zlib.crc32(rest), len(rest)) + rest
        )
        self.entries.append(entry)
        return entry

    def read(self, entry: Entry) -> tuple[Any, bytes]:
        """Head and body; CorruptData if a byte is off."""
        try:
            data = (self.directory / entry.name).read_bytes()
            magic, crc, size = _HEAD.unpack_from(data)
            rest = memoryview(data)[_HEAD.size :]
            if magic != _MAGIC or len(rest) != size or zlib.crc32(rest) != crc:
                raise CorruptData(f"an entry of the spool fails its checksum: {entry.name}")
            (length,) = struct.unpack_from("<I", rest)
            return json.loads(bytes(rest[4 : 4 + length])), bytes(rest[4 + length :])
        except (OSError, struct.error, ValueError) as error:
            raise CorruptData(
                f"an entry of the spool cannot be read: {entry.name}: {error}"
            ) from None

    def remove(self, entry: Entry) -> None:
        """Not made durable: an entry that comes back is sent again, which changes nothing."""
        self.entries.remove(entry)
        (self.directory / entry.name).unlink(missing_ok=True)

    def overflow(self) -> list[Entry]:
        """The oldest entries, as many as are over the bound; never the newest."""
        size_bytes, over = self.size_bytes, []
        for entry in list(self.entries)[:-1]:
            if size_bytes <= self._limit_bytes:
                break
            over.append(entry)
            size_bytes -= entry.size_bytes
        return over

    def refuse(self, entry: Entry) -> None:
        """Put aside what the collector will never take."""
        refused = self.refused
        refused.mkdir(mode=0o700, exist_ok=True)
        self.entries.remove(entry)
        with contextlib.suppress(FileNotFoundError):
            (self.directory / entry.name).replace(refused / entry.name)
        kept, size_bytes = 0, 0
        for old in sorted(_list_entries(refused), reverse=True):
            kept, size_bytes = kept + 1, size_bytes + old.size_bytes
            if kept > _MOST_REFUSED or size_bytes > _REFUSED_BYTES:
                (refused / old.name).unlink(missing_ok=True)


def _list_entries(directory: Path) -> Iterator[Entry]:
    """What a crash left half written goes."""
    with os.scandir(directory) as found:
        for item in found:
            match = _NAME.fullmatch(item.name)
            if match:
                yield Entry(
                    int(match[1]), int(match[2]), int(match[3]), match[4], item.stat().st_size
                )
            elif item.name.endswith(".tmp"):
                Path(item.path).unlink(missing_ok=True)
