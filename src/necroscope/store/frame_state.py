"""What a core was doing at a sample, judged by the innermost frame: an interrupt on an idle core is work."""

from collections.abc import Collection
from enum import IntEnum
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from necroscope.model.idle import IDLE_FUNCTIONS
from necroscope.stacks.frames import values_of
from necroscope.stacks.segment_tree import SegmentTree
from necroscope.stacks.tree import Flags, Numbers

IDLE_TASK: Final = 0
States = NDArray[np.int8]


class State(IntEnum):
    """`INTERRUPT` is all that the idle task is sampled in but idling itself: interrupts, softirqs, the way in and out of idle."""

    KERNEL = 0
    USER = 1
    INTERRUPT = 2
    IDLE = 3

    @property
    def label(self) -> str:
        return "interrupt on an idle core" if self is State.INTERRUPT else self.name.lower()


WORK: Final = frozenset({State.KERNEL, State.USER, State.INTERRUPT})


class StackStates(NamedTuple):
    """The state that a stack means, for a task and for the idle task; one stack more at the end, which stands for a lost one."""

    of_task: States
    of_idle_task: States

    def of(self, rows: Numbers, pids: NDArray[np.signedinteger[Any]]) -> States:
        """Of each sample, given the row of its stack and its process."""
        return np.where(pids == IDLE_TASK, self.of_idle_task[rows], self.of_task[rows])


def stack_states(stacks: SegmentTree) -> StackStates:
    frame = np.append(stacks.tree.frame, -1)
    of_task = np.where(_frames_in(stacks, "kind", ["kernel"]), State.KERNEL, State.USER).astype(np.int8)
    of_idle_task = np.where(_frames_in(stacks, "function", IDLE_FUNCTIONS), State.IDLE, State.INTERRUPT).astype(np.int8)
    return StackStates(of_task[frame], of_idle_task[frame])


def _frames_in(stacks: SegmentTree, column: str, wanted: Collection[str]) -> Flags:
    return np.array([*(value in wanted for value in values_of(stacks.frames.column(column))), False], dtype=np.bool_)
