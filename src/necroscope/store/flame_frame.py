"""A frame of a flame graph, and the numbering of frames over segments and windows."""

from collections import defaultdict
from collections.abc import Iterable
from itertools import count, repeat
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from necroscope.store.forest import Numbers

GROUP: Final = "group"


class FlameFrame(NamedTuple):
    """A function, or a label that stands for a group of samples; `kind` is kernel, user, jit or group."""

    function: str | None
    module: str
    kind: str
    offset: int | None
    build_id: str | None


class FrameNumbers:
    """Numbers frames in the order in which they are first seen; frames are one if all that is known of them is the same."""

    def __init__(self) -> None:
        self.frames: list[FlameFrame] = []
        self._number_of: defaultdict[FlameFrame, int] = defaultdict(count().__next__)

    def of(self, frames: Iterable[FlameFrame]) -> Numbers:
        """The number of each."""
        found = np.fromiter(map(self._number_of.__getitem__, frames), dtype=np.int64)
        self.frames += list(self._number_of)[len(self.frames) :]
        return found


def flame_frames(frames: pa.Table) -> Iterable[FlameFrame]:
    """Rows of the table `frames`."""
    columns = (frames.column(name) for name in FlameFrame._fields)
    texts = (column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column for column in columns)
    # What FlameFrame._make does, without a call in Python for each frame.
    return map(tuple.__new__, repeat(FlameFrame), zip(*(column.to_pylist() for column in texts), strict=True))
