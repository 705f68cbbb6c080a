"""Which entries of the ledger to announce: each when it is opened, or over before that, once more
when what was open is over, and when its verdict has another answer; also across restarts. No I/O.
"""

import zlib
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple

from necroscope.model.units import NS_PER_S
from necroscope.verdicts.entry import IncidentState, LedgerEntry

# At the first start what happened in the last minutes is news too.
_BACK_NS: Final = 600 * NS_PER_S


class News(StrEnum):
    """`first` time, `end` of what was announced while it went on, `update` of the answer."""

    FIRST = "first"
    END = "end"
    UPDATE = "update"


class Announcement(NamedTuple):
    entry: LedgerEntry
    news: News


class Announcements:
    """`since_ns` is where announcing began, by the recording's own time; None until the ledger says
    how far it reaches.
    """

    def __init__(
        self, since_ns: int | None = None, announced: Mapping[str, str] | None = None
    ) -> None:
        self._since_ns = since_ns
        self._announced = dict(announced or {})

    def take(self, changed: Sequence[LedgerEntry], reached_ns: int | None) -> list[Announcement]:
        """Those of the changed entries to announce. `reached_ns` is how far the ledger reaches."""
        if self._since_ns is None:
            if reached_ns is None:
                return []
            self._since_ns = reached_ns - _BACK_NS
        found = []
        for entry in sorted(changed, key=lambda one: one.state is not IncidentState.MERGED):
            news = self._news(entry, self._since_ns)
            if news is not None:
                found.append(Announcement(entry, news))
        return found

    def forget(self, present: Mapping[str, LedgerEntry]) -> None:
        """What the ledger no longer holds does not come again."""
        self._announced = {
            name: state for name, state in self._announced.items() if name in present
        }

    def as_json(self) -> dict[str, Any]:
        return {"since_ns": self._since_ns, "announced": self._announced}

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> "Announcements":
        since_ns = content["since_ns"]
        announced = {str(name): str(state) for name, state in content["announced"].items()}
        return cls(None if since_ns is None else int(since_ns), announced)

    def _news(self, entry: LedgerEntry, since_ns: int) -> News | None:
        before = self._announced.get(entry.id)
        if entry.state is IncidentState.MERGED:
            # A notice of the part was a notice of the whole.
            if before is not None and entry.merged_into is not None:
                self._announced.setdefault(entry.merged_into, before)
            return None
        is_over = entry.state is IncidentState.CLOSED
        if before is None and is_over and entry.incident.to_ns < since_ns:
            return None
        answer = f"{zlib.crc32(entry.incident.verdict.answer.encode()):08x}"
        self._announced[entry.id] = f"{entry.state.value} {answer}"
        if before is None:
            return News.FIRST
        state, _, known = before.partition(" ")
        if state == IncidentState.OPEN and is_over:
            return News.END
        return News.UPDATE if known and known != answer else None
