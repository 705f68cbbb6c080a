"""What a source hands to the recorder: rows of tables, and gaps where something that should be
there was not.
"""

from abc import ABC, abstractmethod
from operator import attrgetter
from typing import NamedTuple

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


class Gap(NamedTuple):
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


def merge_gaps(gaps: list[Gap], closest_ns: int = 1 << 63) -> list[Gap]:
    """Gaps of one table, cause and core are one where no more than `closest_ns` lies between them;
    what was lost adds up.
    """
    merged: dict[tuple[str, str, int | None], list[Gap]] = {}
    for gap in sorted(gaps, key=attrgetter("from_ns")):
        known = merged.setdefault((gap.table, gap.cause, gap.cpu), [])
        if known and gap.from_ns - known[-1].to_ns <= closest_ns:
            before = known.pop()
            to_ns, lost = max(before.to_ns, gap.to_ns), _sum(before.lost, gap.lost)
            known.append(before._replace(to_ns=to_ns, lost=lost))
        else:
            known.append(gap)
    return [gap for known in merged.values() for gap in known]


def _sum(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else one + other


class ColumnBuffers:
    """Rows of one table that never were tuples: the buffers of all its columns, as
    `segment.columns` lays them out.
    """

    __slots__ = ("buffers", "count")

    def __init__(self, count: int, buffers: tuple[bytes, ...]) -> None:
        self.count = count
        self.buffers = buffers

    def __len__(self) -> int:
        return self.count


class Alarm(NamedTuple):
    """Said at once, while its event may still be gathering lines: a reset, lockup or stall is under
    way.
    """

    kind: str
    cpu: int | None
    device: str | None
    queue: int | None
    by_kernel: bool
    time_ns: int


class Trouble(NamedTuple):
    """What fails now, and the tables that lack something because of it."""

    name: str
    tables: tuple[str, ...]
    error: NecroscopeError


class Reading:
    """Rows by table name, each row a tuple in the order of the table's columns, and the gaps
    noticed on the way.

    A source of very many rows gives them as `columns`. `idle_samples` were dropped because the core
    was idle. `alarms` pin the present.

    `trouble` is what fails while the rest is read, at every read for as long as it lasts: it
    becomes one gap of all the source's tables, as a failure does. `parts` are troubles that cost
    less than that, each with a name of its own.
    """

    __slots__ = ("alarms", "columns", "gaps", "idle_samples", "parts", "rows", "trouble")

    def __init__(
        self,
        rows: dict[str, Rows] | None = None,
        gaps: list[Gap] | None = None,
        trouble: NecroscopeError | None = None,
        parts: tuple[Trouble, ...] = (),
        alarms: list[Alarm] | None = None,
    ) -> None:
        self.rows = {} if rows is None else rows
        self.gaps = [] if gaps is None else gaps
        self.trouble = trouble
        self.columns: dict[str, ColumnBuffers] = {}
        self.parts = parts
        self.alarms = [] if alarms is None else alarms
        self.idle_samples = 0


class Source(ABC):
    """One kernel interface: all that the recorder's loop knows about it.

    The first `read` of a source whose rows are differences may return no rows: it has nothing to
    compare with. A failure is `SourceUnavailable`, which the recorder turns into a gap of every
    table in `tables`; the next `read` tries again. A field that this kernel lacks is None in the
    row and one gap at the first read.
    """

    name: str
    tables: tuple[str, ...]
    # Between two reads.
    period_s: float = 1.0
    # It knows when it will have work again (monotonic): until then it is not read.
    idle_until_ns: int = 0
    # Buffers keep what it will give: read before each flush and at a trigger, not by its period.
    is_buffered: bool = False
    # What came before a trigger is to be told from what comes after: a trigger causes a read.
    is_read_at_trigger: bool = False

    @abstractmethod
    def read(self, now: Moment) -> Reading: ...

    def finish(self, now: Moment) -> Reading | None:  # noqa: ARG002
        """The last read: what is still on its way, if it has any such thing."""
        return None

    def descriptor(self) -> int | None:
        """Readable when there is something to `read` at once; the same for the source's life."""
        return None

    def start_segment(self) -> None:  # noqa: B027 - most sources have nothing to repeat
        """What a segment must say to explain itself is due again."""

    @property
    def wants_new_segment(self) -> bool:
        return False

    @property
    def is_resting(self) -> bool:
        """It leaves out its work because all is well, until `wake`."""
        return False

    def wake(self) -> None:  # noqa: B027
        """A stall shows elsewhere: the next read does its work."""

    def close(self) -> None:  # noqa: B027 - most sources hold nothing
        """Give back what it holds in the kernel."""
