"""Folded stacks, `outer;inner 12`, as stackcollapse-perf.pl writes and flamegraph.pl, inferno and speedscope read them.

A name must not hold the separators: `;` becomes `\\x3b`, and control characters, line and paragraph separators the escapes of
`model.names.clean` (a newline is `\\x0a`). With `annotate` kernel frames end in `_[k]` and jitted ones in `_[j]`, as
`stackcollapse-perf.pl --all` does, from which flamegraph.pl takes its colours.
"""

from collections.abc import Sequence
from typing import Any, BinaryIO, Final, Protocol

from numpy.typing import NDArray

from necroscope.model.frame import frame_name
from necroscope.model.names import LINE_LIMIT, clean

_ANNOTATIONS: Final = {"kernel": "_[k]", "jit": "_[j]"}


class TreeFrame(Protocol):
    @property
    def function(self) -> str | None: ...

    @property
    def module(self) -> str: ...

    @property
    def kind(self) -> str: ...

    @property
    def offset(self) -> int | None: ...


class WeightedTree(Protocol):
    """An aggregated call tree: parent -1 at roots, parents before children."""

    @property
    def parent(self) -> NDArray[Any]: ...

    @property
    def frame(self) -> NDArray[Any]: ...

    @property
    def self_weight(self) -> NDArray[Any]: ...

    @property
    def frames(self) -> Sequence[TreeFrame]: ...


def write_folded(tree: WeightedTree, out: BinaryIO, *, annotate: bool = False) -> None:
    """One line for each path that has samples of its own, sorted, so that two files can be compared."""
    names = [folded_name(frame, annotate=annotate) for frame in tree.frames]
    parents, frames = tree.parent.tolist(), tree.frame.tolist()
    lines = [
        f"{';'.join(names[frame] for frame in path_of(parents, frames, node))} {weight}\n"
        for node, weight in enumerate(tree.self_weight.tolist())
        if weight
    ]
    out.writelines(line.encode() for line in sorted(lines))


def path_of(parents: list[int], frames: list[int], node: int) -> list[int]:
    """Frames of a node, outermost first."""
    path = []
    while node != -1:
        path.append(frames[node])
        node = parents[node]
    return path[::-1]


def folded_name(frame: TreeFrame, *, annotate: bool) -> str:
    name = clean(frame_name(frame.function, frame.module, frame.offset), LINE_LIMIT).replace(";", "\\x3b")
    return name + _ANNOTATIONS.get(frame.kind, "") if annotate else name
