"""Which entries of the ledger to announce: each when it is opened, or over before that, and once
more when what was open is over; also across restarts. No I/O.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from necroscope.model.units import NS_PER_S
from necroscope.verdicts.entry import IncidentState, LedgerEntry

# At the first start what happened in the last minutes is news too.
_BACK_NS: Final = 600 * NS_PER_S


class Announcement(NamedTuple):
    """`is_end`: it was announced before, while it went on."""

    entry: LedgerEntry
    is_end: bool


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
            before = self._announced.get(entry.id)
            if self._is_news(entry, before, self._since_ns):
                found.append(Announcement(entry, before is not None))
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

    def _is_news(self, entry: LedgerEntry, before: str | None, since_ns: int) -> bool:
        if entry.state is IncidentState.MERGED:
            # A receiver that heard of the part has heard of the whole.
            if before is not None and entry.merged_into is not None:
                self._announced.setdefault(entry.merged_into, before)
            return False
        if (
            before is None
            and entry.state is IncidentState.CLOSED
            and entry.incident.to_ns < since_ns
        ):
            return False
        self._announced[entry.id] = entry.state.value
        return before is None or (
            before == IncidentState.OPEN and entry.state is IncidentState.CLOSED
        )
