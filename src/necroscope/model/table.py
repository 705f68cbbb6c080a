"""What a stored table is made of: columns with a type and a meaning."""

from enum import Enum
from typing import NamedTuple


class Type(Enum):
    """Column types; CATEGORY is text with few different values, stored as a dictionary."""

    BOOL = "bool"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    UTF8 = "utf8"
    CATEGORY = "category"
    INT32_LIST = "int32_list"


class Column(NamedTuple):
    name: str
    type: Type
    meaning: str
    nullable: bool = False


class Table(NamedTuple):
    """`time` is always the first column, but for the interned tables, which have none.

    A derived table holds what follows from others: it is not recorded, and a segment may be without
    it. `period_s` is how often a table is read; 1 is the tick, which is a setting. What is written
    as things happen is read at every tick.
    """

    name: str
    meaning: str
    origin: str
    columns: tuple[Column, ...]
    is_derived: bool = False
    period_s: float = 1.0

    @property
    def is_timed(self) -> bool:
        return self.columns[0].name == "time"

    def index_of(self, column: str) -> int:
        return next(i for i, c in enumerate(self.columns) if c.name == column)
