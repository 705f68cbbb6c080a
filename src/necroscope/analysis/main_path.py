"""The main path through many stacks: from outside inward along the callee that holds most, as long
as it is the main branch.
"""

from collections import defaultdict
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from necroscope.analysis.functions import functions
from necroscope.stacks.merge import tree_of
from necroscope.stacks.tree import LOST, Tree

LONGEST_PATH: Final = 48
# A path goes on into a callee as long as that holds this much of its caller's weight.
_MAIN_BRANCH: Final = 0.4
# Without a PMU the sampling timer fires where interrupts come back on: that function did nothing,
# its caller did the work. On arm64 that is a function of its own.
SKID: Final = functions(
    "_raw_*_unlock* __raw_*_unlock* *_unlock_irqrestore finish_task_switch* asm_sysvec_* sysvec_*"
    " asm_common_interrupt common_interrupt el1h_64_irq arch_local_irq_*"
)


def main_path(paths: list[tuple[list[int], int]]) -> list[int]:
    known = [(path, weight) for path, weight in paths if path]
    tree, ends = tree_of(path for path, _ in known)
    held = tree.totals(tree.sums(ends, np.array([weight for _, weight in known], dtype=np.int64)))
    # The last place is that of the outermost functions' caller: all of the weight.
    held = np.append(held, sum(weight for _, weight in paths))
    (path,) = tree.paths([inner_end(callees_of(tree), held, LOST, _MAIN_BRANCH)])
    return path[:LONGEST_PATH]


def callees_of(tree: Tree) -> dict[int, list[int]]:
    callees: dict[int, list[int]] = defaultdict(list)
    for row, caller in enumerate(tree.parent.tolist()):
        callees[caller].append(row)
    return callees


def inner_end(callees: dict[int, list[int]], held: NDArray[Any], row: int, least: float) -> int:
    """From a row inward along the callee that holds most, as long as that has `least` of what its
    caller holds.
    """
    while callees[row]:
        inner = max(callees[row], key=held.__getitem__)
        if held[inner] < least * held[row]:
            break
        row = inner
    return row


def without_skid(path: list[str]) -> list[str]:
    """The path up to the function that did the work; one of nothing else stays as it is."""
    end = len(path)
    while end > 1 and path[end - 1] in SKID:
        end -= 1
    return path[:end]
