"""A reading that may have to wait for somebody else, done in a thread, so that the recorder's loop never waits.

Daemons hang and file systems hang; a socket's answer has a deadline, a file's read has none. The loop starts the work, looks
again at each of its turns, and takes what is there. A thread that hangs for good is left: it ends with the process.
"""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from necroscope.errors import NecroscopeError

Result = TypeVar("Result")


class Background(Generic[Result]):
    """At most one piece of work is under way; what it returned or raised is kept until it is taken."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._thread: threading.Thread | None = None
        self._results: list[Result | Exception] = []

    @property
    def is_idle(self) -> bool:
        """Nothing under way and nothing to take."""
        return self._thread is None

    def start(self, work: Callable[[], Result]) -> None:
        assert self._thread is None, "the work before was not taken"

        def run() -> None:
            try:
                self._results.append(work())
            except Exception as error:  # noqa: BLE001 - raised again where it is taken
                self._results.append(error)

        self._thread = threading.Thread(target=run, name=f"necroscope-{self._name}", daemon=True)
        self._thread.start()

    def take(self, wait_s: float = 0.0) -> Result | None:
        """What the work returned, once; None while there is nothing. What it raised is raised here."""
        if self._thread is None:
            return None
        if wait_s:
            self._thread.join(wait_s)
        if not self._results:
            return None
        self._thread = None
        result = self._results.pop()
        if isinstance(result, NecroscopeError):
            raise result
        if isinstance(result, Exception):
            raise NecroscopeError(f"internal error: {result!r}")
        return result

    def close(self, wait_s: float = 0.5) -> None:
        if self._thread is not None:
            self._thread.join(wait_s)
