"""The verdicts of a recording: made once, and anew when it has grown. A long one is gone through hour by hour, newest first.

A day of 96 cores with an incident every ten minutes takes minutes. So the answer holds what was found until now and says how far
it is, and the work is done in a process of its own: in a thread it would hold up every other question.
"""

import gc
import os
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from pathlib import Path
from threading import Lock, Thread
from typing import Any, Final, Protocol

from necroscope.model.units import NS_PER_S
from necroscope.store.query import Store

Span = tuple[int, int]
# Directory of the recording, a moment or none, a stretch or none. Must be importable by name: it runs in another process.
Diagnose = Callable[[Path, int | None, Span | None], dict[str, Any]]
SHORT_NS: Final = 2 * 3600 * NS_PER_S
_PART_NS: Final = 3600 * NS_PER_S
# An incident is looked at with what lies around it, and belongs to the hour in which it begins.
_MARGIN_NS: Final = 180 * NS_PER_S


class Part(Protocol):
    """The report of one hour, sooner or later: a `multiprocessing.pool.AsyncResult`."""

    def ready(self) -> bool: ...

    def get(self) -> dict[str, Any]: ...


class Workers(Protocol):
    """A `multiprocessing.pool.Pool`, as far as it is used."""

    def apply_async(self, func: Diagnose, args: tuple[Path, int | None, Span | None]) -> Part: ...

    def terminate(self) -> None: ...

    def join(self) -> None: ...


@dataclass(slots=True)
class _Sought:
    end_ns: int
    parts: list[tuple[Span, Part]]


class Reports:
    def __init__(self, store: Store, diagnose: Diagnose) -> None:
        self._store = store
        self._diagnose = diagnose
        self._known: dict[int | None, tuple[int | None, dict[str, Any]]] = {}
        self._sought: _Sought | None = None
        self._workers: Workers | None = None
        self._lock = Lock()

    def answer(self, at_ns: int | None = None) -> dict[str, Any]:
        info = self._store.info()
        if at_ns is None and info.from_ns is not None and info.to_ns is not None and info.to_ns - info.from_ns > SHORT_NS:
            return self._so_far((info.from_ns, info.to_ns))
        known = self._known.get(at_ns)
        if known is None or known[0] != info.to_ns:
            known = self._known[at_ns] = (info.to_ns, self._diagnose(self._store.catalog.directory, at_ns, None))
        return {**known[1], "is_complete": True, "progress": 1.0}

    def _so_far(self, span: Span) -> dict[str, Any]:
        with self._lock:
            if self._sought is None or (self._sought.end_ns != span[1] and _is_done(self._sought)):
                self._sought = _Sought(span[1], self._ask(span))
        done = [(own, part.get()) for own, part in self._sought.parts if part.ready()]
        found = [item for own, part in done for item in part["incidents"] if own[0] <= int(item["from_ns"]) < own[1]]
        notes = list(dict.fromkeys(note for _, part in done for note in part.get("notes", [])))
        whole = len(self._sought.parts)
        return {"incidents": found, "notes": notes, "is_complete": len(done) == whole, "progress": len(done) / whole}

    def _ask(self, span: Span) -> list[tuple[Span, Part]]:
        if self._workers is None:
            # A fork would carry the locks of this process's threads.
            self._workers = get_context("spawn").Pool(1, _begin)
        parts = []
        for from_ns in reversed(range(span[0], span[1] + 1, _PART_NS)):
            own = from_ns, from_ns + _PART_NS
            around = own[0] - _MARGIN_NS, own[1] + _MARGIN_NS
            parts.append((own, self._workers.apply_async(self._diagnose, (self._store.catalog.directory, None, around))))
        return parts

    def close(self) -> None:
        """Ends the process. Its semaphores go with the last name of the pool; of those left over Python complains at exit."""
        if self._workers is not None:
            self._workers.terminate()
            self._workers.join()
            self._workers = self._sought = None
            gc.collect()


def _is_done(sought: _Sought) -> bool:
    return all(part.ready() for _, part in sought.parts)


def _begin() -> None:
    """In the process that looks for incidents: others go first, and it ends when the server does, however that ended."""
    os.nice(19)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(0)
