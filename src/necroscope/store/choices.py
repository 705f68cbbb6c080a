"""What a question may choose: states, groups, rows. Known without loading what answers it."""

from enum import IntEnum, StrEnum
from typing import Final

DEFAULT_ROWS: Final = 50
"""Of a heat map."""


class State(IntEnum):
    """What a core was doing at a sample. `INTERRUPT` is all that the idle task is sampled in but
    idling itself: interrupts, softirqs, the way in and out of idle.
    """

    KERNEL = 0
    USER = 1
    INTERRUPT = 2
    IDLE = 3

    @property
    def label(self) -> str:
        return "interrupt on an idle core" if self is State.INTERRUPT else self.name.lower()


WORK: Final = frozenset({State.KERNEL, State.USER, State.INTERRUPT})


class GroupBy(StrEnum):
    """`NAME` joins the processes of one name: a crash loop has a new pid each time, which a
    comparison takes for new code.
    """

    PROCESS = "process"
    THREAD = "thread"
    NAME = "name"
    CORE = "core"
    CGROUP = "cgroup"
    STATE = "state"
