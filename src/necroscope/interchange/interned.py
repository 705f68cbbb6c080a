"""What all captures of an import number their stacks and names by, and how it grew since it was last told."""

from dataclasses import dataclass, field
from typing import NamedTuple

from necroscope.interchange.capture import Names, StackTree
from necroscope.model.frame import Frame


class Growth(NamedTuple):
    """What came behind all that was there; parents and frames of stacks as bytes of their arrays."""

    frames: list[Frame]
    parents: bytes
    stack_frames: bytes
    comms: list[str]
    cgroups: list[str]


@dataclass(slots=True)
class Interned:
    stacks: StackTree = field(default_factory=StackTree)
    comms: Names = field(default_factory=Names)
    cgroups: Names = field(default_factory=Names)

    def sizes(self) -> tuple[int, int, int, int]:
        return len(self.stacks.frames), len(self.stacks), len(self.comms.texts), len(self.cgroups.texts)

    def growth_since(self, sizes: tuple[int, int, int, int]) -> Growth:
        frames, stacks, comms, cgroups = sizes
        return Growth(
            self.stacks.frames[frames:],
            self.stacks.parents[stacks:].tobytes(),
            self.stacks.stack_frames[stacks:].tobytes(),
            self.comms.texts[comms:],
            self.cgroups.texts[cgroups:],
        )

    def grow(self, growth: Growth) -> None:
        """Take in what another process has interned; enough to write it down, not to intern more."""
        self.stacks.frames += growth.frames
        self.stacks.parents.frombytes(growth.parents)
        self.stacks.stack_frames.frombytes(growth.stack_frames)
        self.comms.texts += growth.comms
        self.cgroups.texts += growth.cgroups
