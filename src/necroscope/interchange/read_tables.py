"""What a reader of reports and counters hands over: rows by table, and whose they are."""

from dataclasses import dataclass, field

from necroscope.model.reading import Rows


@dataclass(slots=True)
class ReadTables:
    """`rows` are in the order of each table's columns."""

    host: str | None = None
    kernel_release: str | None = None
    cpus: int | None = None
    rows: dict[str, Rows] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
