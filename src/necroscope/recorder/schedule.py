"""Which source is due, and how late it is: a decision without clocks or I/O."""

from typing import NamedTuple


class Due(NamedTuple):
    name: str
    late_ns: int


class Schedule:
    """Sources by name with their periods. A reading that is late is taken once; the readings it missed are not made up for."""

    def __init__(self) -> None:
        self._period_ns: dict[str, int] = {}
        self._next_ns: dict[str, int] = {}

    def add(self, name: str, period_ns: int, first_ns: int) -> None:
        self._period_ns[name] = period_ns
        self._next_ns[name] = first_ns

    def hasten(self, name: str, now_ns: int) -> None:
        """Due now, and from then on by its period; one that was not added yet is about to have its first turn anyway."""
        if name in self._next_ns:
            self._next_ns[name] = min(self._next_ns[name], now_ns)

    def next_ns(self) -> int:
        return min(self._next_ns.values())

    def take_due(self, now_ns: int) -> list[Due]:
        """What is due now, in the order it was added; each is moved to its next turn on its own grid."""
        due = [Due(name, now_ns - next_ns) for name, next_ns in self._next_ns.items() if next_ns <= now_ns]
        for name, late_ns in due:
            period_ns = self._period_ns[name]
            self._next_ns[name] = now_ns + period_ns - late_ns % period_ns
        return due
