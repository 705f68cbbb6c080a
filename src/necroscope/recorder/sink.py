"""Where the loop's rows go: to disk (`disk.Disk`) or to memory (`memory.MemorySegment`)."""

from dataclasses import dataclass, field
from typing import Protocol

from necroscope.model.reading import ColumnBuffers, Rows
from necroscope.segment.recording import Pin


@dataclass(slots=True)
class RowBatch:
    """Rows by table, and columns of tables in the order in which they are to be written."""

    rows: dict[str, Rows] = field(default_factory=dict)
    columns: list[tuple[str, ColumnBuffers]] = field(default_factory=list)

    @property
    def size_bytes(self) -> int:
        """Of memory, about: a tuple and its values, or the buffers as they are."""
        rows = sum(len(rows) * (56 + 40 * len(rows[0])) for rows in self.rows.values() if rows)
        return rows + sum(len(part) for _, columns in self.columns for part in columns.buffers)

    def __len__(self) -> int:
        """How many rows it holds."""
        return sum(map(len, self.rows.values())) + sum(len(columns) for _, columns in self.columns)


class Sink(Protocol):
    """Takes batches in order and never blocks the loop; what it cannot keep it writes down as a gap
    when it can again.
    """

    def write(self, batch: RowBatch, idle_samples: int, now_ns: int) -> None: ...

    def start_segment(self, start_ns: int) -> None: ...

    def pin(self, pin: Pin) -> None: ...

    def take_loss(self) -> bool:
        """True once after batches were lost: samples would refer to stacks that were in them, so
        begin a new segment.
        """
        ...

    def take_notices(self) -> list[str]: ...

    @property
    def size_bytes(self) -> int: ...

    def close(self) -> None: ...
