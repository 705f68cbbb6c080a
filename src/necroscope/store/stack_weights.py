"""Samples of a window folded: one row for each stack (and group), with its weight, over one call
tree of all segments.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from necroscope.model.frame import Frame
from necroscope.model.span import Span
from necroscope.model.tables import TABLES
from necroscope.segment.arrow import schema_of
from necroscope.segment.reader import SegmentReader
from necroscope.stacks.frames import FrameNumbers, frames_at
from necroscope.stacks.merge import merge
from necroscope.stacks.samples import as_array
from necroscope.stacks.tree import LOST, LevelTree, Numbers, Tree, compacted
from necroscope.store.query import Store
from necroscope.store.segment_selection import SegmentSelection, SelectedSamples
from necroscope.store.selection import Selection
from necroscope.store.time_limit import TimeLimit
from necroscope.store.window_reading import WindowReading

# Columns in addition to those of `samples` that rows can be kept apart by: whether the thread is
# its process's first, and the state.
IS_LEADER: Final = "is_leader"
STATE: Final = "state"
_NEEDED: Final = {IS_LEADER: ("pid", "tid"), STATE: ("pid",)}
_WITHOUT_STACK: Final = "have lost their stack in a gap"
# This many stacks wait until they are merged: few merges, bounded memory.
_PENDING_STACKS: Final = 500_000


@dataclass(frozen=True, slots=True)
class StackWeights:
    """Rows have `stack` (a row of the tree), `weight` and the columns asked for; a frame of the
    tree is one of `frames`.
    """

    rows: pa.Table
    tree: LevelTree
    frames: list[Frame]
    reading: WindowReading
    left_out: list[str]


class _Part(NamedTuple):
    """Rows over stacks that are not merged yet; frames are numbered over all parts."""

    rows: pa.Table
    tree: Tree
    left_out: Counter[str]


def read_weights(
    store: Store,
    window: Span,
    selection: Selection,
    keys: Iterable[str],
    limit: TimeLimit,
    *,
    is_cut: bool = False,
) -> StackWeights:
    """Fold the selected samples by stack and keys; if cut, paths begin at their outermost frame
    that matches the selection.
    """
    reading = WindowReading(store, *window, limit)
    folding = _Folding(reading, selection, sorted(keys), is_cut)
    pending: list[_Part] = []
    for part in reading.segments(folding.fold):
        pending.append(part)
        if sum(len(part.tree) for part in pending) > _PENDING_STACKS:
            pending = [_Part(*folding.merged(pending))]
    rows, tree, left_out = folding.merged(pending)
    return StackWeights(rows, tree, folding.numbering.frames, reading, reading.left_out(left_out))


class _Folding:
    """What is the same for all segments of one question."""

    def __init__(
        self, reading: WindowReading, selection: Selection, keys: Sequence[str], is_cut: bool
    ) -> None:
        self.numbering = FrameNumbers()
        self._reading = reading
        self._selection = selection
        self._keys = keys
        self._is_cut = is_cut
        self._columns = {"stack"}.union(*(_NEEDED.get(key, (key,)) for key in keys))

    def fold(self, reader: SegmentReader) -> _Part:
        selected = SegmentSelection(reader, self._selection)
        left_out: Counter[str] = Counter()
        pieces = []
        for from_ns, to_ns in self._reading.slices(reader):
            samples = selected.samples(from_ns, to_ns, self._columns)
            left_out += samples.left_out
            if samples.rows.num_rows:
                pieces.append(self._rows(selected, samples, left_out))
        if not pieces:
            return self._nothing(left_out)
        return self._part(
            selected, self._sum_weights(pieces) if len(pieces) > 1 else pieces[0], left_out
        )

    def merged(self, parts: Sequence[_Part]) -> tuple[pa.Table, LevelTree, Counter[str]]:
        """Stacks with the same path become one."""
        parts = parts or [self._nothing(Counter())]
        tree, merged = merge(*(part.tree for part in parts))
        rows = [_with_stack(part.rows, new) for part, new in zip(parts, merged, strict=True)]
        summed = rows[0] if len(rows) == 1 else self._sum_weights(rows)
        return summed, tree, sum((part.left_out for part in parts), Counter())

    def _rows(
        self, selected: SegmentSelection, samples: SelectedSamples, left_out: Counter[str]
    ) -> pa.Table:
        """The samples of a piece by the row of their stack and the keys."""
        stack = selected.stacks.rows(samples.numbers("stack"))
        rows = pa.table(
            {
                "stack": as_array(stack),
                "weight": as_array(samples.weights()),
                **{key: self._key(key, selected, samples) for key in self._keys},
            }
        )
        if (stack == LOST).any():
            left_out[_WITHOUT_STACK] += int(samples.weights()[stack == LOST].sum())
            rows = rows.filter(pa.array(stack != LOST))
        return self._sum_weights([rows])

    def _key(self, key: str, selected: SegmentSelection, samples: SelectedSamples) -> Any:
        if key == IS_LEADER:
            return samples.numbers("pid") == samples.numbers("tid")
        if key == STATE:
            return selected.states.of(
                selected.stacks.rows(samples.numbers("stack")), samples.numbers("pid")
            )
        return samples.rows.column(key)

    def _sum_weights(self, tables: Sequence[pa.Table]) -> pa.Table:
        rows = pa.concat_tables(tables)
        if not self._keys:
            return _summed_by_stack(rows)
        rows = rows.unify_dictionaries()
        summed = rows.group_by(["stack", *self._keys], use_threads=False).aggregate(
            [("weight", "sum")]
        )
        return summed.rename_columns(["stack", *self._keys, "weight"]).select(
            tables[0].column_names
        )

    def _part(self, selected: SegmentSelection, rows: pa.Table, left_out: Counter[str]) -> _Part:
        """Only the stacks that the rows need, only the frames that these need."""
        tree = selected.stacks.tree
        if self._is_cut:
            is_below = np.append(tree.on_path(selected.matches), False)[tree.parent]
            tree = Tree(np.where(selected.matches & ~is_below, LOST, tree.parent), tree.frame)
        tree, new = tree.pruned(rows.column("stack").to_numpy())
        frames, place = compacted(tree.frame, selected.stacks.frames.num_rows)
        numbers = self.numbering.of(frames_at(selected.stacks.frames, frames))
        return _Part(_with_stack(rows, new), Tree(tree.parent, numbers[place]), left_out)

    def _nothing(self, left_out: Counter[str]) -> _Part:
        schema = schema_of(TABLES["samples"])
        added = {IS_LEADER: pa.bool_(), STATE: pa.int8()}
        keys = [(key, added.get(key) or schema.field(key).type) for key in self._keys]
        rows = pa.schema([("stack", pa.int64()), ("weight", pa.int64()), *keys]).empty_table()
        no_numbers = np.zeros(0, dtype=np.int64)
        return _Part(rows, Tree(no_numbers, no_numbers), left_out)


def _summed_by_stack(rows: pa.Table) -> pa.Table:
    """Stacks are counted from 0 without holes, so that no hash table is needed."""
    stack = rows.column("stack").to_numpy()
    sums = np.zeros(int(stack.max(initial=-1)) + 1, dtype=np.int64)
    np.add.at(sums, stack, rows.column("weight").to_numpy())
    found = np.flatnonzero(sums)
    return pa.table({"stack": as_array(found), "weight": as_array(sums[found])})


def _with_stack(rows: pa.Table, new: Numbers) -> pa.Table:
    """With the new number of each stack."""
    stack = as_array(new[rows.column("stack").to_numpy()])
    return rows.set_column(rows.column_names.index("stack"), "stack", stack)
