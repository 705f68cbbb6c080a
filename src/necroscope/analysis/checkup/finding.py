"""What a check-up finds, and the rows that it looks at."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from necroscope.model.reading import Value
from necroscope.model.tables import TABLES
from necroscope.model.top_source import TopSample, TopSource

# `from_ns` of a window that holds all there is: the kernel log reaches back to the boot.
_EVER: Final = -(1 << 62)
NamedRow = Mapping[str, Value]


class Level(Enum):
    """PROBLEM makes the check-up fail; NOTICE is reported and fails nothing; UNKNOWN could not be
    looked at.
    """

    PROBLEM = "problem"
    NOTICE = "notice"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Finding:
    """`question` is the slug of the rule that found it; `facts` are lines of detail; `hint` is the
    way out.
    """

    question: str
    level: Level
    title: str
    facts: tuple[str, ...] = ()
    hint: str = ""

    def as_json(self) -> dict[str, Any]:
        named = {"question": self.question, "level": self.level.value, "title": self.title}
        return {**named, "facts": list(self.facts), "hint": self.hint}


@dataclass(frozen=True, slots=True)
class NodeSnapshot:
    """The node as it was seen until `now_ns`; rows come as mappings, because few of them are looked
    at. `recording` is the directory of the node's recorder, if one runs; `silent` are the
    tables whose source had not answered when the look was over; `own_logs` are the last lines that
    units and containers wrote, where they were asked for; `makers` has, by what a container is
    called, the unit that makes it and how that is known.
    """

    source: TopSource
    now_ns: int
    recording: str | None = None
    silent: tuple[str, ...] = ()
    own_logs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    makers: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    _tables: dict[str, list[NamedRow]] = field(default_factory=dict)

    def rows(self, table: str) -> list[NamedRow]:
        if table not in self._tables:
            names = [column.name for column in TABLES[table].columns]
            rows = self.source.rows(table, _EVER, self.now_ns)
            self._tables[table] = [dict(zip(names, row, strict=True)) for row in rows]
        return self._tables[table]

    def newest(self, table: str, *key: str) -> list[NamedRow]:
        """The last row of each object: tables of states are written when a state changes."""
        return list({tuple(row[name] for name in key): row for row in self.rows(table)}.values())

    def closer_look(self, length: str) -> str:
        """The command that says more: of the recorder that runs, or of one to start."""
        if self.recording is not None:
            return f"ask the running recorder: necroscope diagnose {self.recording}"
        return f"record it: necroscope record --for {length}, then: necroscope diagnose"

    def samples(self) -> list[TopSample]:
        return self.source.samples_between(_EVER, self.now_ns)


def number(value: Value) -> int:
    """A whole number, and 0 where none was reported: only for what is compared with a limit."""
    return value if isinstance(value, int) else 0
