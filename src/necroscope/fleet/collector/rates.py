"""How often one may come: a token bucket for each key, in bounded memory."""

import math
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

_MOST_KEYS: Final = 100_000


class Rates:
    """`burst` at once, `per_s` after that. The keys that came last are remembered; the others have
    a full bucket by then.
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
