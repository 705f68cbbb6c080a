"""Verdicts that later rows complete: the incident is judged again when they are there."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from necroscope.analysis import late_facts
from necroscope.analysis.late_facts import LateFact, lacking
from necroscope.model.units import NS_PER_S
from necroscope.store.query import Store
from necroscope.verdicts.entry import IncidentState, LedgerEntry

# A row of a daemon's look has the time at which the look began, and is written when it is over.
_WRITTEN_LATE_NS: Final = 60 * NS_PER_S


class ProvisionalVerdicts:
    """Remembers what a verdict was judged again for: each fact counts once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._used: dict[str, set[LateFact]] = defaultdict(set)
        self._rows = -1
        self._read_to_ns: int | None = None

    def due(self, entries: Iterable[LedgerEntry], end_ns: int) -> list[LedgerEntry]:
        """Those of the entries to judge again. Costs nothing while no verdict lacks anything, or no
        row has come.
        """
        wanted = [
            (entry, facts)
            for entry in entries
            if entry.state is not IncidentState.MERGED
            and (facts := lacking(entry.incident.verdict) - self._used.get(entry.id, set()))
        ]
        if not wanted or (rows := self._count_rows()) == self._rows:
            return []
        self._rows = rows
        seen_ns = min(max(entry.judged_ns, entry.incident.to_ns) for entry, _ in wanted)
        from_ns = seen_ns if self._read_to_ns is None else max(seen_ns, self._read_to_ns)
        self._read_to_ns = end_ns
        supplied = self._read_late_facts(from_ns - _WRITTEN_LATE_NS, end_ns + 1)
        found = []
        for entry, facts in wanted:
            if news := facts & supplied:
                self._used[entry.id] |= news
                found.append(entry)
        return found

    def _count_rows(self) -> int:
        catalog = self._store.catalog
        tables = [catalog.reader(segment).tables for segment in catalog.segments]
        return sum(rows.get(name, 0) for rows in tables for name in late_facts.TABLES)

    def _read_late_facts(self, from_ns: int, to_ns: int) -> set[LateFact]:
        return {
            fact
            for table, columns in late_facts.TABLES.items()
            for fact in late_facts.supplied(
                table, self._store.rows(table, from_ns, to_ns, columns=columns).to_pylist()
            )
        }
