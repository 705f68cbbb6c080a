"""Stacks and frames of one segment, numbered from 0 in it, out of the tree that is interned for the whole import."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from necroscope.interchange.capture import StackTree
from necroscope.model.tables import TABLES
from necroscope.segment.arrow import schema_of

Numbers = npt.NDArray[np.int32]


class SegmentNumbers:
    """Grows with the samples: a stack is numbered when it is first used, after all of its callers."""

    def __init__(self, tree: StackTree) -> None:
        self._tree = tree
        self._local = np.full(0, -1, np.int32)
        self._used: list[Numbers] = []
        self._count = 0

    def number(self, stacks: Numbers) -> Numbers:
        """The segment's numbers of stacks of the tree."""
        if len(self._local) < len(self._tree):
            grown = np.full(len(self._tree), -1, np.int32)
            grown[: len(self._local)] = self._local
            self._local = grown
        new = self._with_callers(stacks[self._local[stacks] < 0])
        self._local[new] = np.arange(self._count, self._count + len(new), dtype=np.int32)
        self._used.append(new)
        self._count += len(new)
        return self._local[stacks]

    def _with_callers(self, stacks: Numbers) -> Numbers:
        """These and all that leads to them, as far as they have no number; in the tree's order, which has callers first."""
        parents = np.array(self._tree.parents, np.int32)
        is_new = np.zeros(len(parents), bool)
        while len(stacks):
            is_new[stacks] = True
            stacks = parents[stacks]
            stacks = stacks[stacks >= 0]
            stacks = stacks[~is_new[stacks] & (self._local[stacks] < 0)]
        return np.flatnonzero(is_new).astype(np.int32)

    def tables(self) -> dict[str, pa.RecordBatch]:
        used = np.concatenate([np.zeros(0, np.int32), *self._used])
        parents = np.array(self._tree.parents, np.int32)[used]
        frames, places = np.unique(np.array(self._tree.stack_frames, np.int32)[used], return_inverse=True)
        local = np.append(self._local, np.int32(-1))
        stacks = [pa.array(np.arange(len(used), dtype=np.int32)), pa.array(local[parents]), pa.array(places.astype(np.int32))]
        return {
            "stacks": pa.RecordBatch.from_arrays(stacks, schema=schema_of(TABLES["stacks"])),
            "frames": self._frames(frames),
        }

    def _frames(self, numbers: Numbers) -> pa.RecordBatch:
        schema = schema_of(TABLES["frames"])
        frames = self._tree.frames
        chosen = [frames[number] for number in numbers.tolist()]
        columns: list[Any] = [np.arange(len(chosen), dtype=np.int32), *zip(*chosen, strict=True)]
        arrays = [
            _dictionary(values) if pa.types.is_dictionary(field.type) else pa.array(values, field.type)
            for values, field in zip(columns, schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _dictionary(texts: tuple[str | None, ...]) -> pa.DictionaryArray:
    """By hand: Arrow's own way loads all of its functions, which takes as long as many an import."""
    places = {text: place for place, text in enumerate(dict.fromkeys(text for text in texts if text is not None))}
    indices = pa.array([places.get(text) if text is not None else None for text in texts], pa.int32())
    return pa.DictionaryArray.from_arrays(indices, pa.array(list(places), pa.utf8()))
