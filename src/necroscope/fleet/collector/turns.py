"""Questions take turns: few are answered at once, some wait, and the others are told to come again.

One that waits holds a thread of the pool that answers whatever else is no coroutine, as the page's
own files.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from necroscope.fleet.collector.refusal import Refusal

_RETRY_S: Final = 10


class Turns:
    def __init__(self, at_once: int, waiting: int, longest_wait_s: float) -> None:
        self._at_once = threading.BoundedSemaphore(at_once)
        self._places = threading.BoundedSemaphore(at_once + waiting)
        self._longest_wait_s = longest_wait_s

    @contextmanager
    def turn(self) -> Iterator[None]:
        if not self._places.acquire(blocking=False):
            raise _too_many()
        try:
            if not self._at_once.acquire(timeout=self._longest_wait_s):
                raise _too_many()
            try:
                yield
            finally:
                self._at_once.release()
        finally:
            self._places.release()


def _too_many() -> Refusal:
    return Refusal(503, "too many questions at once", "ask again in a moment", _RETRY_S)
