"""The main path through many stacks: from outside inward along the callee that holds most, as long as it is the main branch."""

from collections import Counter
from typing import Final

from necroscope.analysis.functions import functions

LONGEST_PATH: Final = 48
# A path goes on into a callee as long as that holds so much of its caller's weight.
_MAIN_BRANCH: Final = 0.4
# Without a PMU the sampling timer fires where interrupts come back on: that function did nothing, its caller did the work.
SKID: Final = functions(
    "_raw_*_unlock* __raw_*_unlock* *_unlock_irqrestore finish_task_switch* asm_sysvec_* sysvec_* asm_common_interrupt"
    " common_interrupt el1h_64_irq"
)


def main_path(paths: list[tuple[list[int], int]]) -> list[int]:
    path: list[int] = []
    held = sum(weight for _, weight in paths)
    while len(path) < LONGEST_PATH:
        depth = len(path)
        branches: Counter[int] = Counter()
        for functions_of, weight in paths:
            if len(functions_of) > depth:
                branches[functions_of[depth]] += weight
        if not branches:
            break
        function, weight = branches.most_common(1)[0]
        if weight < _MAIN_BRANCH * held:
            break
        path.append(function)
        held = weight
        paths = [(own, part) for own, part in paths if len(own) > depth and own[depth] == function]
    return path


def without_skid(path: list[str]) -> list[str]:
    """The path up to the function that did the work; one of nothing else stays as it is."""
    end = len(path)
    while end > 1 and path[end - 1] in SKID:
        end -= 1
    return path[:end]
