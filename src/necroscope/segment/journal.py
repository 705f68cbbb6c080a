"""The writer of a live segment: rows gather in memory, and a flush makes them durable as blocks
with one write and one fdatasync.

A flush is whole or did not happen: blocks go to a known offset, and a write that fails is cut off
again, so that a full disk never leaves half a block. Frames and stacks come before the samples that
refer to them, so that a tail cut off by a crash never leaves samples without their stacks.
"""

import contextlib
import os
from pathlib import Path
from typing import Final, NamedTuple

from necroscope.errors import RecordingError
from necroscope.model.reading import ColumnBuffers, Rows
from necroscope.model.tables import SCHEMA_VERSION, TABLES
from necroscope.segment.block import encode_block, encode_columns, encode_note
from necroscope.segment.checksum import sync_directory

JOURNAL_FILE: Final = "journal"
SEGMENT_NOTE: Final = "segment"
TOTALS_NOTE: Final = "totals"
BLOCK_ROWS: Final = 16_384
_ORDER: Final = ("frames", "stacks", *(name for name in TABLES if name not in ("frames", "stacks")))


class SegmentHeader(NamedTuple):
    """The first block of a journal: what the segment is, whatever becomes of the directory around
    it. `cpus` is 0 where it is not known yet, as in an import.
    """

    segment: str
    node: str
    boot_id: str
    from_ns: int
    cpus: int
    schema: int = SCHEMA_VERSION


class JournalWriteError(RecordingError):
    """The disk took no more (`error_number`: ENOSPC, EIO); rows stay pending until `flush` succeeds
    or `discard` drops them.
    """

    def __init__(self, path: Path, error: OSError) -> None:
        super().__init__(
            f"cannot write {path}: {error.strerror}", "free some space, or lower --max-bytes"
        )
        self.error_number = error.errno


class JournalWriter:
    """`idle_samples` is the caller's count of idle samples dropped in this segment; a flush stores
    it when it changed. What is read once and thrown away need not be `durable`.
    """

    def __init__(self, directory: Path, header: SegmentHeader, *, durable: bool = True) -> None:
        self.path = directory / JOURNAL_FILE
        self.size_bytes = 0
        self.idle_samples = 0
        self._is_durable = durable
        self._stored_idle_samples = 0
        self._pending: dict[str, Rows] = {name: [] for name in _ORDER}
        self._pending_columns: list[tuple[str, ColumnBuffers]] = []
        self._pending_rows = 0
        self._encoded: list[bytes] = [encode_note(SEGMENT_NOTE, header._asdict())]
        self._encoded_rows: dict[str, int] = {}
        try:
            directory.mkdir(mode=0o700)
            self._descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except OSError as error:
            with contextlib.suppress(OSError):
                directory.rmdir()
            raise JournalWriteError(self.path, error) from None
        self._start(directory)

    def append(self, table_name: str, rows: Rows) -> None:
        """Take rows; encoded when many are pending, so that memory stays bounded between
        flushes.
        """
        self._pending[table_name] += rows
        self._pending_rows += len(rows)
        if self._pending_rows >= BLOCK_ROWS:
            self._encode_pending()

    def append_columns(self, table_name: str, columns: ColumnBuffers) -> None:
        """Take columns; they are written behind all rows taken before them, and in the order in
        which they were taken.
        """
        self._pending_columns.append((table_name, columns))
        self._pending_rows += len(columns)

    def flush(self) -> int:
        """Make everything appended durable; returns the bytes written. JournalWriteError leaves the
        journal as it was before.
        """
        self._encode_pending()
        if self.idle_samples != self._stored_idle_samples:
            self._encoded.append(encode_note(TOTALS_NOTE, {"idle_samples": self.idle_samples}))
            self._stored_idle_samples = self.idle_samples
        if not self._encoded:
            return 0
        data = b"".join(self._encoded)
        self._write(data)
        self.size_bytes += len(data)
        self._forget_encoded()
        return len(data)

    def discard(self) -> dict[str, int]:
        """Drop what a failed flush left pending; returns the rows lost by table, for a gap."""
        self._encode_pending()
        lost = dict(self._encoded_rows)
        self._forget_encoded()
        self._stored_idle_samples = -1
        return lost

    def end(self, from_ns: int, to_ns: int, cpus: int) -> None:
        """For who knows only now from when until when it was recorded, idle cores included, and on
        how many cores: the next flush stores it.
        """
        totals = {"idle_samples": self.idle_samples, "from_ns": from_ns, "to_ns": to_ns}
        self._encoded.append(encode_note(TOTALS_NOTE, totals | {"cpus": cpus}))
        self._stored_idle_samples = self.idle_samples

    def close(self) -> None:
        """Flush and let go of the file, which is let go of even if the flush fails."""
        try:
            self.flush()
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Let go of the file as it is, once."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def _start(self, directory: Path) -> None:
        try:
            self.flush()
            if self._is_durable:
                sync_directory(directory)
                sync_directory(directory.parent)
        except JournalWriteError:
            self.abandon()
            self.path.unlink()
            directory.rmdir()
            raise

    def _encode_pending(self) -> None:
        if not self._pending_rows:
            return
        for name, rows in self._pending.items():
            for start in range(0, len(rows), BLOCK_ROWS):
                self._encoded.append(encode_block(TABLES[name], rows[start : start + BLOCK_ROWS]))
            if rows:
                self._encoded_rows[name] = self._encoded_rows.get(name, 0) + len(rows)
                self._pending[name] = []
        for name, columns in self._pending_columns:
            self._encoded.append(encode_columns(TABLES[name], columns))
            self._encoded_rows[name] = self._encoded_rows.get(name, 0) + len(columns)
        self._pending_columns.clear()
        self._pending_rows = 0

    def _forget_encoded(self) -> None:
        self._encoded = []
        self._encoded_rows = {}

    def _write(self, data: bytes) -> None:
        offset, rest = self.size_bytes, memoryview(data)
        try:
            while rest:
                written = os.pwrite(self._descriptor, rest, offset)
                offset, rest = offset + written, rest[written:]
            if self._is_durable:
                os.fdatasync(self._descriptor)
        except OSError as error:
            # Should this fail too, the next flush overwrites the same bytes, and a reader skips
            # them by their checksum.
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, self.size_bytes)
            raise JournalWriteError(self.path, error) from None
