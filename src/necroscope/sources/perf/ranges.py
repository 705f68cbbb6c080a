"""Numbers by range of addresses, found by bisection: one answer of the lookup process serves a whole function."""

from bisect import bisect_right


class Ranges:
    """Ranges that do not overlap, each with the number of a frame."""

    __slots__ = ("_ends", "_numbers", "_starts")

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._numbers: list[int] = []

    def __len__(self) -> int:
        return len(self._starts)

    def find(self, address: int) -> int | None:
        at = bisect_right(self._starts, address) - 1
        return self._numbers[at] if at >= 0 and address < self._ends[at] else None

    def extent(self, address: int) -> tuple[int, int, int] | None:
        """Start, end and number of the range around an address."""
        at = bisect_right(self._starts, address) - 1
        return (self._starts[at], self._ends[at], self._numbers[at]) if at >= 0 and address < self._ends[at] else None

    def add(self, address: int, start: int, end: int, number: int) -> None:
        """The range around an address that is in none. Older ranges keep what they hold: a rewritten file has other functions."""
        at = bisect_right(self._starts, address)
        if at:
            start = max(start, self._ends[at - 1])
        if at < len(self._starts):
            end = min(end, self._starts[at])
        self._starts.insert(at, start)
        self._ends.insert(at, end)
        self._numbers.insert(at, number)

    def clear(self) -> None:
        self._starts.clear()
        self._ends.clear()
        self._numbers.clear()
