"""What may be on its way from the sockets to the lake at once: beyond it a collector says 503 and does not grow."""

import random
from collections.abc import Iterator
from contextlib import contextmanager

from necroscope.fleet.collector.refusal import Refusal


class Budget:
    """Reserved before a body is read, given back when it was answered."""

    def __init__(self, most_bytes: int, most_requests: int) -> None:
        self._most_bytes = most_bytes
        self._most_requests = most_requests
        self.used_bytes = 0
        self.requests = 0

    @contextmanager
    def reserved(self, size_bytes: int) -> Iterator[None]:
        if self.requests >= self._most_requests or self.used_bytes + size_bytes > self._most_bytes:
            # Not all at the same moment: they would meet again.
            raise Refusal(503, "the collector is behind", "send it again later", random.randint(1, 5))
        self.requests += 1
        self.used_bytes += size_bytes
        try:
            yield
        finally:
            self.requests -= 1
            self.used_bytes -= size_bytes
