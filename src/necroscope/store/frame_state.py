"""What a core was doing at a sample, judged by the innermost frame: an interrupt on an idle core is
work.
"""

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from necroscope.model.idle import IDLE_FUNCTIONS
from necroscope.stacks.samples import flags_of
from necroscope.stacks.segment_tree import SegmentTree
from necroscope.stacks.tree import LOST, Numbers
from necroscope.store.choices import State

IDLE_TASK: Final = 0
States = NDArray[np.int8]


class StackStates(NamedTuple):
    """The state that a stack means, for a task and for the idle task; one stack more at the end,
    which stands for a lost one.
    """

    of_task: States
    of_idle_task: States

    def of(self, rows: Numbers, pids: NDArray[np.signedinteger[Any]]) -> States:
        """Of each sample, given the row of its stack and its process."""
        return np.where(pids == IDLE_TASK, self.of_idle_task[rows], self.of_task[rows])


def stack_states(stacks: SegmentTree) -> StackStates:
    in_kernel = flags_of(stacks.frames.column("kind"), "kernel".__eq__)
    in_idle = flags_of(stacks.frames.column("function"), IDLE_FUNCTIONS.__contains__)
    # A lost stack has no frame: the last, which is False.
    in_kernel, in_idle = (
        np.append(flags, False)[np.append(stacks.tree.frame, LOST)]
        for flags in (in_kernel, in_idle)
    )
    of_task = np.where(in_kernel, State.KERNEL, State.USER).astype(np.int8)
    return StackStates(of_task, np.where(in_idle, State.IDLE, State.INTERRUPT).astype(np.int8))
