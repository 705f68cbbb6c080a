"""A live recording of a drawn node that grows as a test lets it: written by the real journal,
flushed, pinned, sealed.
"""

from pathlib import Path
from typing import Self

from tests.drawn_node import START_NS, DrawnNode, at

from necroscope.model.tables import TABLES
from necroscope.segment.journal import JournalWriter, SegmentHeader
from necroscope.segment.recording import (
    LIVE,
    Identity,
    Pin,
    make_recording,
    new_segment_path,
    write_pins,
)
from necroscope.segment.seal_writer import seal


class GrowingRecording:
    """Begins empty. `grow(20)` appends the rows of the first 20 drawn seconds that are not written
    yet.
    """

    def __init__(
        self, directory: Path, node: DrawnNode, labels: dict[str, str] | None = None
    ) -> None:
        self.directory = directory
        self._node = node
        self._second = 0.0
        self._pins: list[Pin] = []
        make_recording(directory, Identity("drawn-node", "boot-1", "drawn", labels or {}))
        self._path = new_segment_path(directory, START_NS)
        header = SegmentHeader(
            self._path.name.removesuffix(LIVE), "drawn-node", "boot-1", START_NS, len(node.cores)
        )
        self._writer = JournalWriter(self._path, header)

    def grow(self, until: float) -> Self:
        for table in TABLES:
            rows = sorted(self._node._rows(table), key=lambda row: row[0])
            if TABLES[table].is_timed:
                rows = [row for row in rows if at(self._second) <= row[0] < at(until)]
            elif self._second:
                rows = []
            if rows:
                self._writer.append(table, rows)
        self._writer.flush()
        self._second = until
        return self

    def late(self, table: str, *rows: tuple[object, ...]) -> Self:
        """Rows that come after their time, as a source may tell them."""
        self._writer.append(table, list(rows))
        self._writer.flush()
        return self

    def pin(self, from_s: float, to_s: float) -> Self:
        self._pins.append(Pin(at(from_s), at(to_s), "saturated: drawn"))
        write_pins(self.directory, self._pins)
        return self

    def seal(self) -> Self:
        self._writer.close()
        seal(self._path)
        return self
