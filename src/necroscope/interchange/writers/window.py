"""What the writers of per-sample formats work on: a window's samples, stacks and frames as numpy
columns in order of time.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Final

import numpy as np

from necroscope.model.frame import Frame
from necroscope.model.units import format_moment
from necroscope.stacks.frames import frames_at
from necroscope.stacks.samples import Samples, SampleTables, numbers, sample_period_ns, samples_of
from necroscope.stacks.tree import Tree

# The id of a cgroup, core or stack that is not known.
UNKNOWN: Final = -1


@dataclass(frozen=True, slots=True)
class WindowFacts:
    """What the samples do not say themselves. `left_out` is what the query could not read, in
    words.
    """

    node: str
    from_ns: int
    to_ns: int
    period_ns: int | None = None
    left_out: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        return f"{self.node} {format_moment(self.from_ns)} to {format_moment(self.to_ns)}"


class Strings(dict[str, int]):
    """A format's one list of texts, which all else refers to by number."""

    def __call__(self, text: str) -> int:
        return self.setdefault(text, len(self))


LOST_FRAME: Final = Frame("[stack lost]", "[unknown]", "lost", None, None)


@dataclass(frozen=True, slots=True)
class SampleColumns(Samples):
    """Samples by time; every `stack` is a row of the tree, and a frame of that a place in
    `frames`.
    """

    tree: Tree
    frames: list[Frame]

    def paths(self) -> Iterator[tuple[int, list[int]]]:
        """The stacks that samples have, and the frames of each, outermost first."""
        stacks = np.unique(self.stack).tolist()
        return zip(stacks, self.tree.paths(stacks), strict=True)

    def period_ns(self, facts: WindowFacts) -> int:
        """As given, else as measured."""
        return facts.period_ns or round(sample_period_ns(self.time_ns, self.cpu))

    def process_names(self) -> dict[int, str]:
        """Each process is called like its main thread; one whose main thread was not sampled has no
        name here.
        """
        rows = np.flatnonzero((self.pid == self.tid) & (self.comm != UNKNOWN))
        return {int(self.pid[row]): self.comms[self.comm[row]] for row in rows}


def columns_of(tables: SampleTables) -> SampleColumns:
    samples = samples_of(tables.samples)
    samples = samples.at(np.argsort(samples.time_ns, kind="stable"))
    tree = Tree(*(numbers(tables.stacks, name, UNKNOWN) for name in ("parent", "frame")))
    frames = [
        frame._replace(module=frame.module or "[unknown]", kind=frame.kind or "user")
        for frame in frames_at(tables.frames)
    ]
    lost = (samples.stack < 0) | (samples.stack >= len(tree))
    if lost.any():
        # One more stack of one frame, so that the samples keep their time, core and task.
        samples = replace(samples, stack=np.where(lost, len(tree), samples.stack))
        tree = Tree(np.append(tree.parent, UNKNOWN), np.append(tree.frame, len(frames)))
        frames.append(LOST_FRAME)
    return SampleColumns(
        **{field.name: getattr(samples, field.name) for field in fields(samples)},
        tree=tree,
        frames=frames,
    )
