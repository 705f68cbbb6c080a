"""What the analysis is handed: the tables of a window of time. `store.query.Store` is one; so is a
drawn node in a test.
"""

from collections.abc import Collection, Sequence
from typing import Protocol

import pyarrow as pa

from necroscope.model.reading import Gap
from necroscope.stacks.samples import SampleTables


class RecordingSummary(Protocol):
    """What a recording holds; times are None while it is empty."""

    @property
    def schema(self) -> int: ...

    @property
    def node(self) -> str: ...

    @property
    def from_ns(self) -> int | None: ...

    @property
    def to_ns(self) -> int | None: ...

    @property
    def cpus(self) -> int | None: ...

    @property
    def tables(self) -> dict[str, int]: ...


class Recording(Protocol):
    """Rows have from_ns <= time < to_ns and come in order of time; a table that was not recorded
    has no rows.
    """

    def rows(
        self,
        table: str,
        from_ns: int,
        to_ns: int,
        cpus: Collection[int] | None = None,
        columns: Sequence[str] | None = None,
    ) -> pa.Table: ...

    def samples(
        self, from_ns: int, to_ns: int, cpus: Collection[int] | None = None
    ) -> SampleTables: ...

    def gaps(self, from_ns: int, to_ns: int) -> list[Gap]: ...

    def info(self) -> RecordingSummary: ...
