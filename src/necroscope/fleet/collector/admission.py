"""How much a collector takes on at once: bytes on their way to the lake, pushes per node and
cluster, questions in turn. Beyond it a sender or reader is asked to come again, and the collector
does not grow.
"""

import math
import random
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from fastapi import Request
from fastapi.responses import JSONResponse

from necroscope.errors import NecroscopeError, UsageError
from necroscope.fleet.lake_files import LakeError, NotInLake
from necroscope.fleet.lake_tables import DAY_NS
from necroscope.fleet.protocol import BadBatch, TooLarge
from necroscope.model.units import NS_PER_S

LAKE_RETRY_S: Final = 30
_MOST_KEYS: Final = 100_000
_RETRY_S: Final = 10
_LONGEST_RETRY_S: Final = 3600


class Refusal(NecroscopeError):  # noqa: N818 - the name says the fact
    """An answer other than 200; with `retry_after_s` the same request may be taken later."""

    def __init__(
        self, status: int, facts: str, hint: str, retry_after_s: int | None = None
    ) -> None:
        super().__init__(facts, hint)
        self.status = status
        self.retry_after_s = retry_after_s


def refusal_of(error: NecroscopeError) -> Refusal:
    """What an error of the parts below means to a client."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, NotInLake):
        return Refusal(404, error.facts, error.hint)
    if isinstance(error, LakeError):
        return Refusal(503, error.facts, error.hint, LAKE_RETRY_S)
    status = (
        413
        if isinstance(error, TooLarge)
        else 400
        if isinstance(error, BadBatch | UsageError)
        else 500
    )
    return Refusal(status, error.facts, error.hint)


async def answer_refusal(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, NecroscopeError)
    refusal = refusal_of(error)
    headers = {} if refusal.retry_after_s is None else {"Retry-After": str(refusal.retry_after_s)}
    if refusal.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return JSONResponse({"error": refusal.facts, "hint": refusal.hint}, refusal.status, headers)


class RequestBudget:
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
        """One push, of a node if its token says so; what it is given takes this many bytes more."""
        if self.requests >= self._most_requests:
            raise _refuse_for_now()
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
                raise _refuse_for_now()
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


def _refuse_for_now() -> Refusal:
    # Not all at the same moment: they would meet again.
    return Refusal(503, "the collector is behind", "send it again later", random.randint(1, 5))


class TokenBuckets:
    """How often each key may come: `burst` at once, `per_s` after that. The keys
    that came last are remembered; the others have a full bucket by then.
    """

    def __init__(self, per_s: float, burst: int, clock_s: Callable[[], float]) -> None:
        self._per_s = per_s
        self._burst = burst
        self._clock_s = clock_s
        self._buckets: OrderedDict[tuple[str, ...], tuple[float, float]] = OrderedDict()

    def wait_s(self, *key: str) -> int:
        """0 if this one may pass, which is counted; else the whole seconds until one may."""
        now_s = self._clock_s()
        level, seen_s = self._buckets.pop(key, (float(self._burst), now_s))
        level = min(self._burst, level + (now_s - seen_s) * self._per_s)
        passes = level >= 1
        self._buckets[key] = (level - 1 if passes else level, now_s)
        if len(self._buckets) > _MOST_KEYS:
            self._buckets.popitem(last=False)
        return 0 if passes else max(1, math.ceil((1 - level) / self._per_s))


class DailyQuota:
    """How much each key may bring in a day of UTC, by the collector's clock. A new day forgets."""

    def __init__(self, clock_ns: Callable[[], int]) -> None:
        self._clock_ns = clock_ns
        self._day = -1
        self._used: Counter[tuple[str, ...]] = Counter()

    def take(self, amount: int, most: int, what: str, *key: str) -> None:
        """Refusal if that would be too much; else it is counted."""
        day, in_day_ns = divmod(self._clock_ns(), DAY_NS)
        if day != self._day:
            self._day = day
            self._used.clear()
        if self._used[what, *key] + amount > most:
            raise Refusal(
                429,
                f"{' node '.join(key)} has sent its {what} of today",
                "look at what it sends: it is far beyond what a node needs",
                min(_LONGEST_RETRY_S, (DAY_NS - in_day_ns) // NS_PER_S + 1),
            )
        self._used[what, *key] += amount


class Turns:
    """Few questions are answered at once, some wait, and the others are refused. One that waits
    holds a thread of the pool that answers all that is not a coroutine, as the page's own files.
    """

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
