"""Recordings of any tables for tests, written by the real journal: segments that a test makes, lets
grow, and seals.
"""

from pathlib import Path
from typing import Any

from necroscope.model.reading import Row
from necroscope.model.tables import TABLES
from necroscope.segment.journal import JournalWriter, SegmentHeader
from necroscope.segment.recording import LIVE, Identity, make_recording, new_segment_path
from necroscope.segment.seal_writer import seal

NS = 1_000_000_000
MINUTE_NS = 60 * NS
# A whole minute.
START_NS = 1_760_000_040_000_000_000
_NOTHING = {
    "int64": 0,
    "int32": 0,
    "int16": 0,
    "bool": False,
    "utf8": "",
    "category": "",
    "int32_list": [],
}


def at(seconds: float) -> int:
    return START_NS + round(seconds * NS)


def row(table: str, seconds: float, /, **values: Any) -> Row:
    """What is not given is null, or nothing where it may not be null."""
    given = {"time": at(seconds), **values}
    columns = TABLES[table].columns
    assert not set(given) - {column.name for column in columns}
    return tuple(
        given.get(column.name, None if column.nullable else _NOTHING[column.type.value])
        for column in columns
    )


def tick(seconds: float, cpu: int = 0, **shares: float) -> Row:
    """A second of a core, by the shares of its modes; the rest is idle."""
    times = {f"{mode}_ns": round(share * NS) for mode, share in shares.items()}
    return row(
        "cores", seconds, cpu=cpu, elapsed_ns=NS, **({"idle_ns": NS - sum(times.values())} | times)
    )


def new_recording(
    directory: Path, boot_id: str = "boot-1", labels: dict[str, str] | None = None
) -> Path:
    make_recording(directory, Identity("node-a", boot_id, "necroscope 1.2.3", labels or {}))
    return directory


class WrittenSegment:
    """A segment that begins at a second; `add` makes its rows durable at once."""

    def __init__(
        self, recording: Path, seconds: float, cpus: int = 2, boot_id: str = "boot-1"
    ) -> None:
        self.path = new_segment_path(recording, at(seconds))
        header = SegmentHeader(
            self.path.name.removesuffix(LIVE), "node-a", boot_id, at(seconds), cpus
        )
        self._writer = JournalWriter(self.path, header)
        self._writer.idle_samples = 1
        self._writer.flush()

    def add(self, table: str, *rows: Row) -> "WrittenSegment":
        self._writer.append(table, list(rows))
        self._writer.flush()
        return self

    def ticks(self, from_s: int, to_s: int, cpus: int = 2, **shares: float) -> "WrittenSegment":
        """A tick at the end of each second."""
        return self.add(
            "cores",
            *(
                tick(second + 1, cpu, **shares)
                for second in range(from_s, to_s)
                for cpu in range(cpus)
            ),
        )

    def leave(self) -> "WrittenSegment":
        """As a recorder that was killed leaves it."""
        self._writer.close()
        return self

    def seal(self) -> "WrittenSegment":
        self._writer.close()
        assert seal(self.path) is not None
        return self
