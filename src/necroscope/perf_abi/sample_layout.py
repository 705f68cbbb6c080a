"""What decides how a PERF_RECORD_SAMPLE looks (include/uapi/linux/perf_event.h); the native core
takes samples apart.
"""

from typing import Final, NamedTuple

SAMPLE_STACK_USER: Final = 1 << 13
SAMPLE_CGROUP: Final = 1 << 21


class SampleLayout(NamedTuple):
    """The part of an event's attributes that decides how its samples look."""

    sample_type: int
    read_format: int = 0
    branch_sample_type: int = 0
    user_registers: int = 0
    interrupt_registers: int = 0

    def has(self, field: int) -> bool:
        return bool(self.sample_type & field)
