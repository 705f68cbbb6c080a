"""Looks for incidents in a stretch of a recording: here, or one stretch after the other in a
process of its own.

A stretch that cannot be looked at is reported, and the others go on: a cause may trip over odd
data, and a process that needs too much memory is killed.
"""

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from threading import Lock, Thread
from typing import Any, NamedTuple

from necroscope.errors import NecroscopeError
from necroscope.model.span import Span

# Directory of the recording, a moment or none, a stretch or none. Must be importable by name: it
# runs in another process.
Diagnose = Callable[[Path, int | None, Span | None], dict[str, Any]]


class SearchResult(NamedTuple):
    """`rest` is what else `diagnose --json` tells; `failure` says why there is nothing, or is
    None.
    """

    incidents: list[dict[str, Any]]
    notes: list[str]
    failure: str | None = None
    rest: dict[str, Any] = {}  # noqa: RUF012 - never changed


def search(
    diagnose: Diagnose, directory: Path, at_ns: int | None, span: Span | None
) -> SearchResult:
    try:
        answer = diagnose(directory, at_ns, span)
    except NecroscopeError as error:
        return SearchResult([], [], error.facts)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is reported, and the rest of the page goes on
        return SearchResult([], [], f"{type(error).__name__}: {error}")
    return SearchResult(answer.pop("incidents"), answer.pop("notes", []), rest=answer)


class IncidentSearch:
    """Questions wait in line; the process that answers them is started with the first, and again
    when it died.
    """

    def __init__(self, diagnose: Diagnose, directory: Path) -> None:
        self._diagnose = diagnose
        self._directory = directory
        self._line = ThreadPoolExecutor(1, "incidents")
        self._begun_before: tuple[Connection, SpawnProcess] | None = None
        self._is_closed = False
        self._lock = Lock()

    def submit(self, span: Span) -> "Future[SearchResult]":
        return self._line.submit(self._ask, span)

    def close(self) -> None:
        self._line.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            self._is_closed = True
            if self._begun_before is not None:
                self._begun_before[1].kill()
        self._line.shutdown(wait=True)

    def _ask(self, span: Span) -> SearchResult:
        try:
            connection, process = self._begun()
            connection.send(span)
            wait([connection, process.sentinel])
            found: SearchResult = connection.recv()
        except (OSError, EOFError) as error:
            return SearchResult(
                [], [], self._exit_reason() or f"no process to look for incidents: {error}"
            )
        return found

    def _begun(self) -> tuple[Connection, SpawnProcess]:
        with self._lock:
            if self._is_closed:
                raise OSError("the server ends")
            if self._begun_before is None:
                # A fork would carry the locks of this process's threads.
                context = get_context("spawn")
                ours, theirs = context.Pipe()
                process = context.Process(
                    target=_answer, args=(self._diagnose, self._directory, theirs), daemon=True
                )
                process.start()
                theirs.close()
                self._begun_before = ours, process
            return self._begun_before

    def _exit_reason(self) -> str | None:
        """How the process ended; the next question starts another."""
        with self._lock:
            if self._begun_before is None:
                return None
            connection, process = self._begun_before
            self._begun_before = None
        connection.close()
        process.join()
        return f"the process that looked for incidents was ended (exit code {process.exitcode})"


def _answer(diagnose: Diagnose, directory: Path, connection: Connection) -> None:
    """In the process of its own: others go first, and it ends when the server does, however that
    ended.
    """
    os.nice(19)
    Thread(target=_end_with_parent, daemon=True).start()
    while True:
        try:
            span = connection.recv()
        except EOFError:
            return
        connection.send(search(diagnose, directory, None, span))


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(0)
