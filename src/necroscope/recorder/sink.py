"""Where the loop's rows go: to disk (`disk.Disk`) or to memory (`memory.MemorySegment`)."""

from typing import Protocol

from necroscope.model.reading import Rows
from necroscope.segment.recording import Pin

Batch = dict[str, Rows]


class Sink(Protocol):
    """Takes batches in order and never blocks the loop; what it cannot keep it writes down as a gap when it can again."""

    def write(self, batch: Batch, idle_samples: int, now_ns: int) -> None: ...

    def start_segment(self, start_ns: int) -> None: ...

    def pin(self, pin: Pin) -> None: ...

    def take_loss(self) -> bool:
        """True once after batches were lost: samples would refer to stacks that were in them, so begin a new segment."""
        ...

    def take_notices(self) -> list[str]: ...

    @property
    def size_bytes(self) -> int: ...

    def close(self) -> None: ...
