"""What a source hands to the recorder: rows of tables, and gaps where something that should be
there was not.
"""

from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from necroscope.errors import NecroscopeError

Value = int | str | bool | None | list[int]
Row = tuple[Value, ...]
Rows = list[Row]


class Moment(NamedTuple):
    """One instant on two clocks: `time_ns` is the recording's UTC time line, `monotonic_ns`
    measures what elapsed.
    """

    time_ns: int
    monotonic_ns: int


@dataclass(frozen=True, slots=True)
class Gap:
    """A stretch of a table that should have been recorded and was not; `lost` counts records where
    that is known.
    """

    table: str
    from_ns: int
    to_ns: int
    cause: str
    cpu: int | None = None
    lost: int | None = None

    def row(self) -> Row:
        return (self.from_ns, self.to_ns, self.table, self.cause, self.cpu, self.lost)


@dataclass(frozen=True, slots=True)
class Columns:
    """Rows of one table that never were tuples: the buffers of all its columns, as
    `segment.columns` lays them out.
    """

    count: int
    buffers: tuple[bytes, ...]

    def __len__(self) -> int:
        return self.count


@dataclass(slots=True)
class Reading:
    """Rows by table name, each row a tuple in the order of the table's columns, and the gaps
    noticed on the way.

    A source of very many rows gives them as `columns`.

    `trouble` is what fails while the rest is read, at every read for as long as it lasts: it
    becomes one gap, as a failure does.
    """

    rows: dict[str, Rows] = field(default_factory=dict)
    gaps: list[Gap] = field(default_factory=list)
    trouble: NecroscopeError | None = None
    columns: dict[str, Columns] = field(default_factory=dict)


class Source(Protocol):
    """One kernel interface, read on a cadence.

    The first `read` of a source whose rows are differences may return no rows: it has nothing to
    compare with. A failure is `SourceUnavailable`, which the recorder turns into a gap of every
    table in `tables`; the next `read` tries again. A field that this kernel lacks is None in the
    row and one gap at the first read.

    A source that knows when it will have work again may say so in `idle_until_ns` (monotonic):
    until then it is not read.
    """

    name: str
    tables: tuple[str, ...]
    period_s: float

    def read(self, now: Moment) -> Reading: ...

    def close(self) -> None: ...
