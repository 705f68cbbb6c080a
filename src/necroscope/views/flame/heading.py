"""What stands above a flame graph or heat map: node, window, cores, samples, and what was left
out.
"""

from dataclasses import dataclass
from typing import Self

from necroscope.model.units import format_duration, format_moment
from necroscope.stacks.flame_tree import FlameTree
from necroscope.views.format import count, literal_line


@dataclass(frozen=True, slots=True)
class HeadingWindow:
    from_ns: int
    to_ns: int
    samples: int
    unit: str = "samples"

    @classmethod
    def of(cls, tree: FlameTree) -> Self:
        return cls(tree.from_ns, tree.to_ns, tree.samples)

    def __str__(self) -> str:
        # To the millisecond, as the moments next to it: a window of 5 s that lost its last sample's
        # tail is still 5 s.
        length = format_duration(self.to_ns - self.from_ns)
        return (
            f"{format_moment(self.from_ns)} to {format_moment(self.to_ns)} ({length}),"
            f" {count(self.samples)} {self.unit}"
        )


@dataclass(frozen=True, slots=True)
class Heading:
    """`cores` and `filters` in words, for example `core 7` and `comm kubelet`; `baseline` only of a
    differential.
    """

    title: str
    node: str
    window: HeadingWindow
    cores: str = "all cores"
    filters: tuple[str, ...] = ()
    baseline: HeadingWindow | None = None
    left_out: tuple[str, ...] = ()

    @property
    def headline(self) -> str:
        """The title as it may stand in a document."""
        return literal_line(self.title)

    def lines(self) -> list[str]:
        choice = ", ".join([self.node, self.cores, *self.filters])
        lines = [
            (
                f"{choice}: {self.window}"
                if self.baseline is None
                else f"{choice}, window: {self.window}"
            )
        ]
        if self.baseline is not None:
            lines.append(
                f"compared with baseline: {self.baseline}; a width is the mean of the two shares"
            )
        lines += [f"left out: {text}" for text in self.left_out]
        return [literal_line(line) for line in lines]
