"""A reading that may have to wait for another process, done in a thread, so that the recorder's
loop never waits.

Daemons hang and file systems hang; a socket's answer has a deadline, a file's read has none. The
loop starts the work, looks again at each of its turns, and takes what is there. A thread that hangs
for good is left: it ends with the process.
"""

import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import Final, Generic, TypeVar

from necroscope.errors import NecroscopeError, SourceUnavailable

Result = TypeVar("Result")
PATIENCE_S: Final = 60.0


class Background(Generic[Result]):
    """At most one piece of work is under way; what it returned or raised is kept until it is taken.

    The thread is kept for the next piece: to wake one costs a fifth of starting one. A node that is
    out of threads refuses it, and work may hang for good: both are `trouble` until the next piece
    is under way or done.
    """

    def __init__(self, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._name = name
        self._clock = clock
        self._started_s = 0.0
        self._refusal: SourceUnavailable | None = None
        self._thread: threading.Thread | None = None
        self._work: SimpleQueue[Callable[[], Result] | None] = SimpleQueue()
        self._results: list[Result | Exception] = []
        self._has_result = threading.Event()
        self.is_idle = True
        """Nothing under way and nothing to take."""

    def start(self, work: Callable[[], Result]) -> None:
        assert self.is_idle, "the work before was not taken"
        if self._thread is None:
            thread = threading.Thread(
                target=self._run, name=f"necroscope-{self._name}", daemon=True
            )
            try:
                thread.start()
            except RuntimeError as error:
                self._refusal = SourceUnavailable(f"cannot ask in the background: {error}")
                return
            self._thread = thread
        self._refusal, self.is_idle, self._started_s = None, False, self._clock()
        self._work.put(work)

    @property
    def trouble(self) -> SourceUnavailable | None:
        if self.is_idle or self._results or self._clock() - self._started_s < PATIENCE_S:
            return self._refusal
        return SourceUnavailable(f"no answer for more than {PATIENCE_S:.0f} s")

    def take(self, wait_s: float = 0.0) -> Result | None:
        """What the work returned, once; None while there is nothing. What it raised is raised
        here.
        """
        if wait_s:
            self.wait(wait_s)
        if not self._results:
            return None
        self._has_result.clear()
        result = self._results.pop()
        self.is_idle = True
        if isinstance(result, NecroscopeError):
            raise result
        if isinstance(result, Exception):
            raise NecroscopeError(f"internal error: {result!r}")
        return result

    def wait(self, wait_s: float) -> None:
        """Until there is something to take, at most this long."""
        if not self.is_idle:
            self._has_result.wait(wait_s)

    def close(self, wait_s: float = 0.5) -> None:
        """What is under way may end within this time; there is no starting again."""
        self._work.put(None)
        if self._thread is not None:
            self._thread.join(wait_s)

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            try:
                self._results.append(work())
            except Exception as error:  # noqa: BLE001 - raised again where it is taken
                self._results.append(error)
            self._has_result.set()
