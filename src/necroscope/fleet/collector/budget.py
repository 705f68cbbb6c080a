"""What may be on its way from the sockets to the lake at once: beyond it a collector says 503 and
does not grow.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from necroscope.fleet.collector.refusal import Refusal


class Budget:
    """Taken as the bytes of a body come, given back when it was answered: who announces much and
    sends little holds little.
    """

    def __init__(self, most_bytes: int, most_requests: int, most_requests_of_one: int) -> None:
        self._most_bytes = most_bytes
        self._most_requests = most_requests
        self._most_requests_of_one = most_requests_of_one
        self._requests_of: Counter[tuple[str, str]] = Counter()
        self.used_bytes = 0
        self.requests = 0

    @contextmanager
    def push(self, node: tuple[str, str] | None) -> Iterator[Callable[[int], None]]:
        """One push, of a node if its token says so; what it is given takes so many bytes more."""
        if self.requests >= self._most_requests:
            raise _behind()
        if node is not None and self._requests_of[node] >= self._most_requests_of_one:
            raise Refusal(
                429,
                f"{' node '.join(node)} sends too much at once",
                "send one after the other",
                random.randint(1, 5),
            )
        taken_bytes = 0

        def take(size_bytes: int) -> None:
            nonlocal taken_bytes
            if self.used_bytes + size_bytes > self._most_bytes:
                raise _behind()
            self.used_bytes += size_bytes
            taken_bytes += size_bytes

        self._count(node, 1)
        try:
            yield take
        finally:
            self._count(node, -1)
            self.used_bytes -= taken_bytes

    def _count(self, node: tuple[str, str] | None, change: int) -> None:
        self.requests += change
        if node is not None:
            self._requests_of[node] += change
            if not self._requests_of[node]:
                del self._requests_of[node]


def _behind() -> Refusal:
    # Not all at the same moment: they would meet again.
    return Refusal(503, "the collector is behind", "send it again later", random.randint(1, 5))
