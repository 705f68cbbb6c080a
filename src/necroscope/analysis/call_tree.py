"""The call tree of a window: for each stack which functions it holds, answered for all stacks at once."""

import numpy as np
from numpy.typing import NDArray

from necroscope.analysis.functions import Flags, FunctionNames, Functions, frame_names
from necroscope.analysis.recording import SampleTables

Numbers = NDArray[np.int64]
LOST = -1


class CallTree:
    """Stacks by row number; one more row at the end stands for a lost stack and for the caller of an outermost frame."""

    def __init__(self, tables: SampleTables, names: FunctionNames) -> None:
        self.names = names
        frames = tables.frames
        kinds = frames.column("kind").to_pylist()
        ids = np.append(names.ids(frame_names(frames), [kind == "kernel" for kind in kinds]), LOST)
        count = tables.stacks.num_rows
        parent = tables.stacks.column("parent").fill_null(LOST).to_numpy().astype(np.int64)
        frame = tables.stacks.column("frame").fill_null(LOST).to_numpy().astype(np.int64)
        self.parent: Numbers = np.append(np.where(parent < 0, count, parent), count)
        self.function: Numbers = np.append(ids[frame], LOST)
        self._inclusive: dict[tuple[Functions, Functions | None], Flags] = {}
        self._is_kernel: Flags | None = None

    def is_in(self, group: Functions) -> Flags:
        """For each stack whether its innermost function is of the group."""
        members = np.append(self.names.members(group), False)
        return np.asarray(members[self.function])

    def holds(self, group: Functions, inside: Functions | None = None) -> Flags:
        """For each stack whether one of its functions is of the group, and is called from one of `inside` if that is given."""
        key = group, inside
        if key not in self._inclusive:
            own = self.is_in(group) if inside is None else self.is_in(group) & self.holds(inside)
            self._inclusive[key] = self._inherited(own)
        return self._inclusive[key]

    @property
    def is_kernel(self) -> Flags:
        """For each stack whether its innermost function is the kernel's."""
        if self._is_kernel is None:
            self._is_kernel = np.append(self.names.is_kernel(), False)[self.function]
        return self._is_kernel

    def path(self, stack: int) -> list[int]:
        """Function numbers of a stack, outermost first."""
        path = []
        while stack != len(self.parent) - 1:
            path.append(int(self.function[stack]))
            stack = int(self.parent[stack])
        return path[::-1]

    def _inherited(self, own: Flags) -> Flags:
        """What a stack has, all stacks that it calls have; in each round callers twice as far away are asked."""
        flags, caller = own.copy(), self.parent
        last = len(caller) - 1
        while (caller != last).any():
            flags |= flags[caller]
            caller = caller[caller]
        return flags
