"""What a PERF_RECORD_SAMPLE may hold and in which order (include/uapi/linux/perf_event.h, `enum perf_event_sample_format`)."""

from dataclasses import dataclass
from typing import Final

from necroscope.perf_abi.event_attr import (
    SAMPLE_CPU,
    SAMPLE_ID,
    SAMPLE_IDENTIFIER,
    SAMPLE_IP,
    SAMPLE_TID,
    SAMPLE_TIME,
)

SAMPLE_ADDR: Final = 1 << 3
SAMPLE_READ: Final = 1 << 4
SAMPLE_PERIOD: Final = 1 << 8
SAMPLE_STREAM_ID: Final = 1 << 9
SAMPLE_BRANCH_STACK: Final = 1 << 11
SAMPLE_STACK_USER: Final = 1 << 13
SAMPLE_WEIGHT: Final = 1 << 14
SAMPLE_DATA_SRC: Final = 1 << 15
SAMPLE_TRANSACTION: Final = 1 << 17
SAMPLE_REGS_INTR: Final = 1 << 18
SAMPLE_PHYS_ADDR: Final = 1 << 19
SAMPLE_AUX: Final = 1 << 20
SAMPLE_CGROUP: Final = 1 << 21
SAMPLE_DATA_PAGE_SIZE: Final = 1 << 22
SAMPLE_CODE_PAGE_SIZE: Final = 1 << 23
SAMPLE_WEIGHT_STRUCT: Final = 1 << 24

FORMAT_TOTAL_TIME_ENABLED: Final = 1 << 0
FORMAT_TOTAL_TIME_RUNNING: Final = 1 << 1
FORMAT_ID: Final = 1 << 2
FORMAT_GROUP: Final = 1 << 3
FORMAT_LOST: Final = 1 << 4

BRANCH_HW_INDEX: Final = 1 << 17
BRANCH_COUNTERS: Final = 1 << 19

FLAG_EXCLUDE_CALLCHAIN_USER: Final = 1 << 22

CONTEXT_GUEST: Final = (1 << 64) - 2048
CONTEXT_GUEST_KERNEL: Final = (1 << 64) - 2176
CONTEXT_GUEST_USER: Final = (1 << 64) - 2560

# Fields of one word each before the first of variable size, in the order in which the kernel writes them.
_HEAD: Final = (
    SAMPLE_IDENTIFIER,
    SAMPLE_IP,
    SAMPLE_TID,
    SAMPLE_TIME,
    SAMPLE_ADDR,
    SAMPLE_ID,
    SAMPLE_STREAM_ID,
    SAMPLE_CPU,
    SAMPLE_PERIOD,
)
# `struct sample_id` at the end of every other record when sample_id_all is set.
_TRAILER: Final = (SAMPLE_TID, SAMPLE_TIME, SAMPLE_ID, SAMPLE_STREAM_ID, SAMPLE_CPU, SAMPLE_IDENTIFIER)


@dataclass(frozen=True, slots=True)
class SampleLayout:
    """The part of an event's attributes that decides how its samples look; equal layouts are read together."""

    sample_type: int
    read_format: int = 0
    branch_sample_type: int = 0
    user_registers: int = 0
    interrupt_registers: int = 0

    def has(self, field: int) -> bool:
        return bool(self.sample_type & field)

    def position(self, field: int) -> int | None:
        """Words from the record's header to a field of the head, None when it is not there."""
        if not self.has(field):
            return None
        return 1 + sum(self.has(earlier) for earlier in _HEAD[: _HEAD.index(field)])

    @property
    def head_words(self) -> int:
        """The header and the fixed fields: where the first field of variable size begins."""
        return 1 + sum(self.has(field) for field in _HEAD)

    @property
    def id_position(self) -> int | None:
        position = self.position(SAMPLE_IDENTIFIER)
        return position if position is not None else self.position(SAMPLE_ID)

    def words_before_end(self, field: int) -> int | None:
        """How far before the end of a record that is no sample a field of its trailer lies."""
        return sum(self.has(later) for later in _TRAILER[_TRAILER.index(field) :]) if self.has(field) else None

    @property
    def read_words(self) -> tuple[int, int]:
        """Words of PERF_SAMPLE_READ that are always there, and those for each event of a group."""
        times = bool(self.read_format & FORMAT_TOTAL_TIME_ENABLED) + bool(self.read_format & FORMAT_TOTAL_TIME_RUNNING)
        each = 1 + bool(self.read_format & FORMAT_ID) + bool(self.read_format & FORMAT_LOST)
        return (1 + times, each) if self.read_format & FORMAT_GROUP else (times + each, 0)
