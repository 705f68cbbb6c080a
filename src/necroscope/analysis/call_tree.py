"""The call tree of a window: for each stack which functions it holds, answered for all stacks at
once.
"""

from collections.abc import Iterable, Iterator
from functools import cached_property

import numpy as np

from necroscope.analysis.functions import FunctionNames, Functions, frame_names
from necroscope.stacks.samples import SampleTables, numbers
from necroscope.stacks.tree import LOST, Flags, Numbers, Tree


class CallTree:
    """Stacks by row number; what is said of each of them has one place more, which LOST finds: no
    function, and nothing holds.
    """

    def __init__(self, tables: SampleTables, names: FunctionNames) -> None:
        self.names = names
        kinds = tables.frames.column("kind").to_pylist()
        ids = np.append(
            names.ids(frame_names(tables.frames), [kind == "kernel" for kind in kinds]), LOST
        )
        self.tree = Tree(
            numbers(tables.stacks, "parent", LOST), ids[numbers(tables.stacks, "frame", LOST)]
        )
        self.function: Numbers = np.append(self.tree.frame, LOST)
        self._inclusive: dict[tuple[Functions, Functions | None], Flags] = {}

    def is_in(self, group: Functions) -> Flags:
        """For each stack whether its innermost function is of the group."""
        members = np.append(self.names.members(group), False)
        return np.asarray(members[self.function])

    def holds(self, group: Functions, inside: Functions | None = None) -> Flags:
        """For each stack whether one of its functions is of the group, and is called from one of
        `inside` if that is given.
        """
        key = group, inside
        if key not in self._inclusive:
            own = self.is_in(group) if inside is None else self.is_in(group) & self.holds(inside)
            self._inclusive[key] = np.append(self.tree.on_path(own[:-1]), False)
        return self._inclusive[key]

    @cached_property
    def is_kernel(self) -> Flags:
        """For each stack whether its innermost function is the kernel's."""
        return np.append(self.names.is_kernel(), False)[self.function]

    def paths(self, stacks: Iterable[int]) -> Iterator[list[int]]:
        """Function numbers of each stack, outermost first, as far as they are known."""
        return (
            [function for function in path if function >= 0] for path in self.tree.paths(stacks)
        )
