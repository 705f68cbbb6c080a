"""Which modules have frames without a function, and how many samples that touches."""

from typing import Final

import numpy as np
import numpy.typing as npt

from necroscope.interchange.capture import StackTree
from necroscope.stacks.tree import Tree

_MOST_MODULES: Final = 20
_REST: Final = 62  # the last bit but the sign


class UnnamedCount:
    """Counts samples by stack; `notes` says what they lack."""

    def __init__(self, stacks: StackTree) -> None:
        self._stacks = stacks
        self._counts = np.zeros(0, np.int64)

    def add(self, stacks: npt.NDArray[np.int32]) -> None:
        counts = np.bincount(stacks[stacks >= 0], minlength=len(self._counts))
        counts[: len(self._counts)] += self._counts
        self._counts = counts

    def notes(self) -> list[str]:
        modules = self._unnamed_modules()
        touched = sorted(((samples, module) for module, samples in modules.items() if samples), reverse=True)
        notes = [f"functions of {module} could not be named: {samples} samples" for samples, module in touched[:_MOST_MODULES]]
        if len(touched) > _MOST_MODULES:
            notes.append(f"functions of {len(touched) - _MOST_MODULES} more modules could not be named")
        return notes

    def _unnamed_modules(self) -> dict[str, int]:
        """Samples whose stack has a frame without a name, by that frame's module; of very many modules the rest is one."""
        bits: dict[str, int] = {}
        own = np.zeros(len(self._stacks.frames), np.int64)
        for number, frame in enumerate(self._stacks.frames):
            if frame.function is None:
                own[number] = 1 << min(bits.setdefault(frame.module, len(bits)), _REST)
        tree = Tree(np.array(self._stacks.parents, np.int64), np.array(self._stacks.stack_frames, np.int64))
        sampled = np.flatnonzero(self._counts)
        # Far fewer sets of modules than stacks.
        sets, places = np.unique(tree.on_path(own[tree.frame])[sampled], return_inverse=True)
        samples = np.bincount(places, self._counts[sampled], len(sets))
        names = [module for module, bit in bits.items() if bit < _REST] + ["more modules"] * (len(bits) > _REST)
        return {name: int(samples[sets >> bit & 1 == 1].sum()) for bit, name in enumerate(names)}
