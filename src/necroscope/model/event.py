"""A row of `events`, by the names of its columns."""

from dataclasses import dataclass
from operator import attrgetter
from typing import Final

from necroscope.model.reading import Row

# Severities of syslog.
ERROR: Final = 3
WARNING: Final = 4
NOTICE: Final = 5
INFO: Final = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Its fields stand in the order of the columns. What the kernel log did not say is not
    `by_kernel`, and has neither pattern nor sequence.
    """

    time_ns: int
    kind: str
    pattern: str | None = None
    cpu: int | None = None
    device: str | None = None
    queue: int | None = None
    pid: int | None = None
    comm: str | None = None
    severity: int = WARNING
    by_kernel: bool = False
    sequence: int | None = None
    message: str
    lines: str | None = None
    fields: str | None = None

    def row(self) -> Row:
        return _row(self)


_row = attrgetter(*Event.__dataclass_fields__)
