"""One segment, sealed or live, to ask: rows of a table in a window, gaps, span, sizes."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from necroscope.model.reading import Gap
from necroscope.model.tables import SCHEMA_VERSION, TABLES
from necroscope.segment.arrow import empty
from necroscope.segment.kept_rows import KeptRows
from necroscope.segment.live import LiveSegment
from necroscope.segment.recording import LIVE
from necroscope.segment.sealed_reader import SealedSegment
from necroscope.segment.versions import LAYOUTS, upgrade_rows


class SegmentReader:
    """Never an exception for damaged content: what cannot be trusted is a gap, listed by `gaps`
    once a read has met it.

    A segment that goes away meanwhile is a `SegmentGoneError`, one of a newer schema a
    RecordingError.
    """

    def __init__(self, path: Path, kept: KeptRows | None = None) -> None:
        self.path = path
        self.is_live = path.name.endswith(LIVE)
        self._content: SealedSegment | LiveSegment = (
            LiveSegment(path) if self.is_live else SealedSegment(path, kept)
        )

    def refresh(self) -> None:
        """A live segment grows; a sealed one never changes."""
        if isinstance(self._content, LiveSegment):
            self._content.refresh()

    def read(
        self, table: str, from_ns: int, to_ns: int, columns: Sequence[str] | None = None
    ) -> pa.Table:
        """Rows with from_ns <= time < to_ns; all rows of a table without time. A table that no
        recorder knows is empty.
        """
        if table not in TABLES:
            return pa.table({})
        wanted = (
            list(columns)
            if columns is not None
            else [column.name for column in TABLES[table].columns]
        )
        layout = LAYOUTS[self._content.schema].get(table)
        if layout is None:
            return empty(TABLES[table]).select(wanted)
        is_current = self._content.schema == SCHEMA_VERSION
        needed = [
            c.name for c in layout.columns if not is_current or c.name in wanted or c.name == "time"
        ]
        parts = list(
            self._content.read(layout, (from_ns, to_ns) if layout.is_timed else None, needed)
        )
        if not parts:
            return empty(TABLES[table]).select(wanted)
        return upgrade_rows(table, pa.concat_tables(parts), self._content.schema).select(wanted)

    def verify(self) -> list[Gap]:
        """Read every byte of every table, and return all gaps."""
        for table in self.tables:
            self.read(table, -(1 << 63), (1 << 63) - 1)
        return self.gaps()

    def gaps(self) -> list[Gap]:
        """Gaps that were recorded, and those that reads found: each with its cause."""
        return self._content.gaps()

    @property
    def span(self) -> tuple[int, int]:
        """The time recorded."""
        return self._content.span

    @property
    def reach(self) -> tuple[int, int]:
        """First and last time of any row; the kernel log at the first start lies before the
        span.
        """
        return self._content.reach

    @property
    def tables(self) -> dict[str, int]:
        """Rows by table."""
        return self._content.tables

    @property
    def bytes(self) -> int:
        return self._content.bytes

    @property
    def bytes_read(self) -> int:
        """Bytes that reads have touched so far."""
        return self._content.bytes_read

    @property
    def node(self) -> str:
        return self._content.node

    @property
    def cpus(self) -> int | None:
        return self._content.cpus

    @property
    def idle_samples(self) -> int:
        return self._content.idle_samples
