"""The verdicts of a recording, from its ledger where it has one; else made once, and again when it
has grown. A long one without a ledger is gone through hour by hour, newest first.

A day of 96 cores with an incident every ten minutes takes minutes. So the answer holds what was
found until now and says how far it is, and what could not be looked at. The work is done in a
process of its own: a thread would hold up all other questions. The verdict on a short one takes
about a second and is waited for; if it takes longer, the answer says so and a later one has it.
"""

from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from threading import Lock
from typing import Any, Final, Protocol

from necroscope.model.span import Span
from necroscope.model.units import NS_PER_S
from necroscope.store.query import Store
from necroscope.verdicts.ledger import Ledger
from necroscope.views.web.incident_search import Diagnose, IncidentSearch, SearchResult, search

SHORT_NS: Final = 2 * 3600 * NS_PER_S
TIME_LIMIT_S: Final = 10.0
_PART_NS: Final = 3600 * NS_PER_S
# An incident is looked at with what lies around it, and belongs to the hour in which it begins.
_MARGIN_NS: Final = 180 * NS_PER_S


class Search(Protocol):
    """An `IncidentSearch`."""

    def submit(self, span: Span) -> Future[SearchResult]: ...

    def close(self) -> None: ...


@dataclass(slots=True)
class _PendingSearch:
    end_ns: int
    parts: list[tuple[Span, Future[SearchResult]]]

    def is_done(self) -> bool:
        return all(part.done() for _, part in self.parts)


class Reports:
    def __init__(
        self, store: Store, diagnose: Diagnose, incident_search: Search | None = None
    ) -> None:
        self._store = store
        self._diagnose = diagnose
        self._directory = store.catalog.directory
        self._search = incident_search or IncidentSearch(diagnose, store.catalog.directory)
        self._short_ones = ThreadPoolExecutor(2, "report")
        self._known: dict[int | None, tuple[int, Future[SearchResult]]] = {}
        self._sought: _PendingSearch | None = None
        self._lock = Lock()

    def answer(self, at_ns: int | None = None) -> dict[str, Any]:
        info = self._store.info()
        if info.from_ns is None or info.to_ns is None:
            return _answer([], 0)
        span = Span(info.from_ns, info.to_ns)
        is_long = span[1] - span[0] > SHORT_NS
        if at_ns is None and is_long and not Ledger.open(self._directory).covers(span[0]):
            return self._so_far(span)
        part = self._short(at_ns, span[1])
        wait([part], TIME_LIMIT_S)
        return (
            part.result().rest | _answer([(span, part.result())], 1)
            if part.done()
            else _answer([], 1)
        )

    def close(self) -> None:
        self._short_ones.shutdown(wait=False, cancel_futures=True)
        self._search.close()

    def _short(self, at_ns: int | None, end_ns: int) -> Future[SearchResult]:
        with self._lock:
            known = self._known.get(at_ns)
            if known is None or (known[0] != end_ns and known[1].done()):
                part = self._short_ones.submit(
                    search, self._diagnose, self._store.catalog.directory, at_ns, None
                )
                known = self._known[at_ns] = (end_ns, part)
            return known[1]

    def _so_far(self, span: Span) -> dict[str, Any]:
        with self._lock:
            if self._sought is None or (self._sought.end_ns != span[1] and self._sought.is_done()):
                self._sought = _PendingSearch(span[1], self._ask(span))
        done = [(own, part.result()) for own, part in self._sought.parts if part.done()]
        return _answer([(own, _within(found, own)) for own, found in done], len(self._sought.parts))

    def _ask(self, span: Span) -> list[tuple[Span, Future[SearchResult]]]:
        hours = [
            Span(from_ns, from_ns + _PART_NS)
            for from_ns in reversed(range(span[0], span[1] + 1, _PART_NS))
        ]
        return [
            (own, self._search.submit(Span(own[0] - _MARGIN_NS, own[1] + _MARGIN_NS)))
            for own in hours
        ]


def _within(found: SearchResult, own: Span) -> SearchResult:
    return found._replace(
        incidents=[item for item in found.incidents if own[0] <= int(item["from_ns"]) < own[1]]
    )


def _answer(parts: list[tuple[Span, SearchResult]], total: int) -> dict[str, Any]:
    failed = [
        {"from_ns": str(own[0]), "to_ns": str(own[1]), "error": found.failure}
        for own, found in parts
        if found.failure
    ]
    return {
        "incidents": [item for _, found in parts for item in found.incidents],
        "notes": list(dict.fromkeys(note for _, found in parts for note in found.notes)),
        "failed": failed,
        "is_complete": len(parts) >= total,
        "progress": len(parts) / total if total else 1.0,
    }
