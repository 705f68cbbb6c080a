"""Frames and stacks of the segment under way: each distinct one gets a number and is written once."""

from typing import Final, NamedTuple

from necroscope.model.reading import Row, Rows

NO_PARENT: Final = -1
# A segment that needs more is closed early, so that its reader and this process stay small.
MOST_STACKS: Final = 200_000


class Frame(NamedTuple):
    """What a row of `frames` says, and the identity by which frames are the same function."""

    function: str | None
    module: str
    kind: str
    offset: int | None
    build_id: str | None


class Interned:
    """Numbers for frames and stacks, counted from 0 in each segment."""

    def __init__(self) -> None:
        self._frames: dict[Frame, int] = {}
        self._stacks: dict[tuple[int, int], int] = {}
        self._frame_of: list[Frame] = []
        self._node_of: list[tuple[int, int]] = []
        self._new_frames: Rows = []
        self._new_stacks: Rows = []

    @property
    def is_full(self) -> bool:
        return len(self._stacks) >= MOST_STACKS

    def stack(self, frames: list[Frame]) -> int:
        """The number of this stack, given outermost frame first; an empty one is NO_PARENT."""
        known = self._stacks
        parent = NO_PARENT
        for frame in frames:
            number = self._frames.get(frame)
            if number is None:
                number = self._frames[frame] = len(self._frames)
                self._frame_of.append(frame)
                self._new_frames.append((number, *frame))
            key = (parent, number)
            child = known.get(key)
            if child is None:
                child = known[key] = len(known)
                self._node_of.append(key)
                self._new_stacks.append((child, parent, number))
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
        self._frames.clear()
        self._stacks.clear()
        self._frame_of.clear()
        self._node_of.clear()
        self._new_frames.clear()
        self._new_stacks.clear()
