"""What a reader of other tools' profiles hands over: facts, notes, and batches of samples as
columns of the table `samples`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from necroscope.interchange.import_profile import ImportProfile
from necroscope.model.reading import ColumnBuffers

LATEST_NS: Final = (1 << 62) - 1
"""No time of a sample is later; what a file says beyond it is this."""
# Where the columns of `samples` lie among its buffers (profile.sample_columns).
_TIME: Final = 1
_CPU: Final = 3
_PID: Final = 5
_TID: Final = 7
_NAME: Final = 9
_STACK: Final = 17
_WEIGHT: Final = 19


@dataclass(slots=True)
class CaptureFacts:
    """What a capture says about itself. Times are UTC only where `time_is_wall_clock`; else
    `why_not_wall_clock` says why.

    `first_ns` is that of the first sample in the file, where that is known. `since_boot_offset_ns`
    is what to add to the kernel's clock since boot to have UTC, where the capture knows both.
    """

    kind: str
    host: str | None = None
    kernel_release: str | None = None
    arch: str | None = None
    cpus: int | None = None
    command_line: str | None = None
    event_names: list[str] = field(default_factory=list)
    time_is_wall_clock: bool = False
    why_not_wall_clock: str = ""
    has_time: bool = True
    first_ns: int | None = None
    since_boot_offset_ns: int | None = None


class SampleBatch(NamedTuple):
    """Samples of one segment in time order, from the first to the last of them; those of idle cores
    are only counted.

    `columns` is None where all were idle; a row stands for one sample unless they are weighted.
    Stacks are numbers of the profile, until its segment is left.
    """

    segment: int
    from_ns: int
    to_ns: int
    columns: ColumnBuffers | None
    idle: int
    is_weighted: bool = False

    def __len__(self) -> int:
        return self.columns.count if self.columns is not None else 0

    @property
    def samples(self) -> int:
        """Those of idle cores among them."""
        return self.idle + (sum(self.weight) if self.is_weighted else len(self))

    @property
    def time_ns(self) -> "memoryview[int]":
        return self._column(_TIME, "q")

    @property
    def cpu(self) -> "memoryview[int]":
        return self._column(_CPU, "h")

    @property
    def pid(self) -> "memoryview[int]":
        return self._column(_PID, "i")

    @property
    def tid(self) -> "memoryview[int]":
        return self._column(_TID, "i")

    @property
    def stack(self) -> "memoryview[int]":
        return self._column(_STACK, "i")

    @property
    def weight(self) -> "memoryview[int]":
        return self._column(_WEIGHT, "i")

    def _column(self, place: int, code: str) -> "memoryview[int]":
        buffers = self.columns.buffers if self.columns is not None else ()
        return memoryview(buffers[place] if buffers else b"").cast(code)  # type: ignore[call-overload,no-any-return]


class Lost(NamedTuple):
    """Samples the kernel could not write; `cpu` is -1 where the record does not say."""

    time_ns: int
    cpu: int
    samples: int


def _one_segment(_time_ns: int) -> tuple[int, int]:
    return 0, LATEST_NS + 1


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """How a capture is read: into which profile, what is added to its times, what lies in the
    window of times that gives.

    `segment_at` says in which segment a time lies, and where that ends. `event` is that of whose
    samples are wanted; of several that of None is the one that samples time.
    """

    profile: ImportProfile = field(default_factory=ImportProfile)
    offset_ns: int = 0
    from_ns: int = 0
    to_ns: int = LATEST_NS + 1
    segment_at: Callable[[int], tuple[int, int]] = _one_segment
    event: str | None = None
    all_events: bool = False


@dataclass(slots=True)
class Capture:
    """One profile. `batches` reads it from the start each time it is called, and holds one batch of
    it in memory.

    `lost` and `notes` grow while batches are read; `lost` has the times of the plan. Notes say what
    could not be read or named; what was read before a fault is kept. `bytes_read` is how far the
    reading has come in the file.
    """

    facts: CaptureFacts
    batches: Callable[[ImportPlan], Iterator[SampleBatch]]
    notes: list[str] = field(default_factory=list)
    lost: list[Lost] = field(default_factory=list)
    bytes_read: int = 0
