"""Which source is due, and how late it is: a decision without clocks or I/O."""

from typing import NamedTuple


class DueSource(NamedTuple):
    name: str
    late_ns: int


class Schedule:
    """Sources by name with their periods. A reading that is late is taken once; the readings it
    missed are not made up for.

    Nearly all have the same period and the same grid, so they are kept by both: a tick moves a few
    groups, not every source.
    """

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        # Names by next turn and period.
        self._groups: dict[tuple[int, int], list[str]] = {}

    def add(self, name: str, period_ns: int, first_ns: int) -> None:
        self._remove(name)
        self._places.setdefault(name, len(self._places))
        self._put([name], first_ns, period_ns)

    def hasten(self, name: str, now_ns: int) -> None:
        """Due now, and from then on by its period; one that was not added yet is about to have its
        first turn anyway.
        """
        turn = next((turn for turn, names in self._groups.items() if name in names), None)
        if turn is not None and turn[0] > now_ns:
            self._remove(name)
            self._put([name], now_ns, turn[1])

    def next_ns(self) -> int:
        return min(self._groups)[0]

    def take_due(self, now_ns: int) -> list[DueSource]:
        """What is due now, in the order it was added; each is moved to its next turn on its own
        grid.
        """
        groups = [turn for turn in self._groups if turn[0] <= now_ns]
        due: list[DueSource] = []
        for turn in groups:
            next_ns, period_ns = turn
            names, late_ns = self._groups.pop(turn), now_ns - next_ns
            due += [DueSource(name, late_ns) for name in names]
            self._put(names, now_ns + period_ns - late_ns % period_ns, period_ns)
        if len(groups) > 1:
            due.sort(key=lambda item: self._places[item.name])
        return due

    def _put(self, names: list[str], next_ns: int, period_ns: int) -> None:
        """Those on the same grid from now on stay together, in their order."""
        others = self._groups.get((next_ns, period_ns))
        self._groups[next_ns, period_ns] = (
            names if others is None else sorted([*others, *names], key=self._places.__getitem__)
        )

    def _remove(self, name: str) -> None:
        self._groups = {
            turn: left
            for turn, names in self._groups.items()
            if (left := [other for other in names if other != name])
        }
