"""Frames and stacks of the segment under way: each distinct one gets a number and is written once."""

from collections.abc import Iterable
from typing import Final

from necroscope.model.frame import Frame
from necroscope.model.reading import Row, Rows

NO_PARENT: Final = -1
_FRAME_BITS: Final = 32
# A segment that needs more is closed early, so that its reader and this process stay small.
MOST_STACKS: Final = 100_000


class Interned:
    """Numbers for frames, kept as long as the process, and for the frames and stacks of a segment, counted from 0 in each.

    A frame is looked up by its five fields once; from then on it is a number, because hashing five texts costs more than all
    the rest of numbering a stack.
    """

    def __init__(self) -> None:
        self._numbers: dict[Frame, int] = {}
        self._frame_of: list[Frame] = []
        self._segment_frames: dict[int, int] = {}
        self._stacks: dict[int, int] = {}
        self._node_of: list[tuple[int, int]] = []
        self._new_frames: Rows = []
        self._new_stacks: Rows = []

    @property
    def is_full(self) -> bool:
        return len(self._stacks) >= MOST_STACKS

    @property
    def frames_known(self) -> int:
        return len(self._frame_of)

    def frame(self, frame: Frame) -> int:
        """The number of this frame, for `stack`."""
        number = self._numbers.get(frame)
        if number is None:
            number = self._numbers[frame] = len(self._frame_of)
            self._frame_of.append(frame)
        return number

    def child(self, parent: int, frame: int) -> int | None:
        """The stack that this frame makes on top of `parent`, if it was ever seen in this segment."""
        return self._stacks.get((parent + 1) << _FRAME_BITS | frame)

    def stack(self, frames: Iterable[int], parent: int = NO_PARENT) -> int:
        """The stack that these frames, outermost first, make on top of `parent`; no frames at all are `parent` itself."""
        known = self._stacks
        for frame in frames:
            key = (parent + 1) << _FRAME_BITS | frame
            child = known.get(key)
            if child is None:
                child = known[key] = len(self._node_of)
                self._node_of.append((parent, frame))
                self._new_stacks.append((child, parent, self._segment_frame(frame)))
            parent = child
        return parent

    def frames_of(self, stack: int) -> list[Frame]:
        """The frames of a stack of this segment, innermost first."""
        frames = []
        while stack != NO_PARENT:
            stack, frame = self._node_of[stack]
            frames.append(self._frame_of[frame])
        return frames

    def take_rows(self) -> tuple[list[Row], list[Row]]:
        """Frames and stacks that are new since the last call, for their tables."""
        frames, self._new_frames = self._new_frames, []
        stacks, self._new_stacks = self._new_stacks, []
        return frames, stacks

    def start_segment(self) -> None:
        self._segment_frames.clear()
        self._stacks.clear()
        self._node_of.clear()
        self._new_frames.clear()
        self._new_stacks.clear()

    def _segment_frame(self, frame: int) -> int:
        number = self._segment_frames.get(frame)
        if number is None:
            number = self._segment_frames[frame] = len(self._segment_frames)
            self._new_frames.append((number, *self._frame_of[frame]))
        return number
