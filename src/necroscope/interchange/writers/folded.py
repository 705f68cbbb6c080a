"""Folded stacks, `outer;inner 12`, as stackcollapse-perf.pl writes and flamegraph.pl, inferno and
speedscope read them.

A name must not hold the separators: `;` becomes `\\x3b`, and control characters, line and paragraph
separators the escapes of `model.names.clean` (a newline is `\\x0a`). With `annotate` kernel frames
end in `_[k]` and jitted ones in `_[j]`, as `stackcollapse-perf.pl --all` does, from which
flamegraph.pl takes its colours.
"""

from typing import BinaryIO, Final

import numpy as np

from necroscope.model.frame import Frame
from necroscope.model.names import LINE_LIMIT, clean
from necroscope.stacks.flame_tree import FlameTree

_ANNOTATIONS: Final = {"kernel": "_[k]", "jit": "_[j]"}


def write_folded(flame: FlameTree, out: BinaryIO, *, annotate: bool = False) -> None:
    """One line for each path that has samples of its own, sorted, so that two files can be
    compared.
    """
    names = [folded_name(frame, annotate=annotate) for frame in flame.frames]
    ends = np.flatnonzero(flame.self_weight)
    paths = flame.paths(ends.tolist())
    weights = flame.self_weight[ends].tolist()
    lines = [
        f"{';'.join(names[frame] for frame in path)} {weight}\n"
        for path, weight in zip(paths, weights, strict=True)
    ]
    out.writelines(line.encode() for line in sorted(lines))


def folded_name(frame: Frame, *, annotate: bool) -> str:
    name = clean(frame.name, LINE_LIMIT).replace(";", "\\x3b")
    return name + _ANNOTATIONS.get(frame.kind, "") if annotate else name
