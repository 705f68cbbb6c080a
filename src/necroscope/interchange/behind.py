"""Work that a thread of its own does in order, while whoever asks for it goes on."""

import queue
from collections.abc import Callable
from threading import Thread
from typing import Final

# Pieces of work that may wait: each holds a batch of samples.
_MOST_WAITING: Final = 6


class Behind:
    """A fault of the work is raised to who asks for more of it, or to who waits for its end."""

    def __init__(self) -> None:
        self._waiting: queue.Queue[Callable[[], None] | None] = queue.Queue(_MOST_WAITING)
        self._fault: Exception | None = None
        self._thread = Thread(target=self._run)
        self._thread.start()

    def do(self, work: Callable[[], None]) -> None:
        self._raise_fault()
        self._waiting.put(work)

    def finish(self) -> None:
        """Returns when all is done; nothing may be asked for afterwards."""
        self.stop()
        self._raise_fault()

    def stop(self) -> None:
        """As `finish`, whatever went wrong."""
        if self._thread.is_alive():
            self._waiting.put(None)
            self._thread.join()

    def _raise_fault(self) -> None:
        if self._fault is not None:
            raise self._fault

    def _run(self) -> None:
        while (work := self._waiting.get()) is not None:
            if self._fault is None:
                try:
                    work()
                except Exception as error:  # noqa: BLE001 - raised in the thread that asked for it
                    self._fault = error
