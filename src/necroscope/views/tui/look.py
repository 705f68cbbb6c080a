"""Where the user looks: the order of cores, the core in hand, the moment. A key makes a new value
out of the one before.
"""

from dataclasses import dataclass, replace
from typing import Final

from necroscope.model.span import Extent
from necroscope.views.tui.screen import CoreOrder, Position

_SORTS: Final = tuple(CoreOrder)


@dataclass(frozen=True, slots=True)
class Look:
    """`at_ns` None follows the recorder; `sort` None is chosen by the number of cores."""

    sort: CoreOrder | None = None
    at_ns: int | None = None
    position: Position = Position.LIVE
    cpu: int | None = None
    is_detail: bool = False

    def next_sort(self, shown: CoreOrder) -> "Look":
        return replace(self, sort=_SORTS[(_SORTS.index(shown) + 1) % len(_SORTS)])

    def live(self) -> "Look":
        return replace(self, at_ns=None, position=Position.LIVE)

    def freeze(self, span: Extent | None) -> "Look":
        """Stop at the newest moment, or follow again."""
        if self.position is not Position.LIVE:
            return self.live()
        return self if span is None else replace(self, at_ns=span[1], position=Position.FROZEN)

    def move(self, by_ns: int, span: Extent | None) -> "Look":
        """Back or forth in time: not beyond the oldest moment; at the newest the view follows
        again.
        """
        if span is None or (self.at_ns is None and by_ns > 0):
            return self
        at_ns = self.moment(span) + by_ns
        return (
            self.live()
            if at_ns >= span[1]
            else replace(self, at_ns=max(at_ns, span[0]), position=Position.BACK)
        )

    def oldest(self, span: Extent | None) -> "Look":
        return self if span is None else replace(self, at_ns=span[0], position=Position.BACK)

    def moment(self, span: Extent) -> int:
        """The moment to show; one that has fallen out of memory is the oldest that is left."""
        return span[1] if self.at_ns is None else min(max(self.at_ns, span[0]), span[1])

    def select(self, by: int, cpus: list[int]) -> "Look":
        """The core `by` places further down the list, in which nothing is in hand at first."""
        if not cpus:
            return self
        if self.cpu not in cpus:
            return replace(self, cpu=cpus[0])
        return replace(self, cpu=cpus[min(max(cpus.index(self.cpu) + by, 0), len(cpus) - 1)])

    def toggle_detail(self, cpus: list[int]) -> "Look":
        if self.is_detail or not cpus:
            return self.close_detail()
        return replace(self, is_detail=True, cpu=self.cpu if self.cpu in cpus else cpus[0])

    def close_detail(self) -> "Look":
        return replace(self, is_detail=False)
