"""The selected samples of one segment, piece by piece; stacks and frames are read once, and only if
something asks for them.
"""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from necroscope.segment.reader import SegmentReader
from necroscope.stacks.samples import narrow_numbers, numbers
from necroscope.stacks.segment_tree import SegmentTree, segment_tree
from necroscope.stacks.tree import Flags, Numbers
from necroscope.store.choices import WORK
from necroscope.store.frame_state import IDLE_TASK, StackStates, stack_states
from necroscope.store.matching import matching, passing
from necroscope.store.selection import BY_FILTER, BY_STATE, Selection


@dataclass(frozen=True, slots=True)
class SelectedSamples:
    """Rows of `samples`, and the weight of those that were left out, by why."""

    rows: pa.Table
    left_out: Counter[str]

    def numbers(self, column: str, missing: int = -1) -> Numbers:
        return numbers(self.rows, column, missing)

    def weights(self) -> Numbers:
        return numbers(self.rows, "weight", 1)


class SegmentSelection:
    def __init__(self, reader: SegmentReader, selection: Selection) -> None:
        self._reader = reader
        self._selection = selection

    @cached_property
    def stacks(self) -> SegmentTree:
        return segment_tree(self._reader.read("stacks", 0, 0), self._reader.read("frames", 0, 0))

    @cached_property
    def matches(self) -> Flags:
        """Stacks whose innermost frame matches the selection's expression."""
        return matching(self._selection.frames or "", self.stacks.frames)[self.stacks.tree.frame]

    def samples(self, from_ns: int, to_ns: int, columns: Collection[str]) -> SelectedSamples:
        by_stack = self._selection.needs_stacks(self._reader)
        needed = {
            "time",
            "weight",
            *columns,
            *self._selection.columns(),
            *(("pid", "stack") if by_stack else ()),
        }
        rows = self._reader.read("samples", from_ns, to_ns, sorted(needed))
        if needed & {"comm", "cgroup"}:
            rows = rows.unify_dictionaries()
        left_out: Counter[str] = Counter()
        passes = passing(self._selection, rows)
        rows = _keep(rows, passes, BY_FILTER, left_out)
        return SelectedSamples(self._by_stack(rows, left_out) if by_stack else rows, left_out)

    def _by_stack(self, rows: pa.Table, left_out: Counter[str]) -> pa.Table:
        rows = _keep(rows, self._state_passes(rows), BY_STATE, left_out)
        if self._selection.frames is None:
            return rows
        return _keep(
            rows, self._paths_match[self.stacks.rows(numbers(rows, "stack"))], BY_FILTER, left_out
        )

    def _state_passes(self, rows: pa.Table) -> Flags:
        """Mostly all states of work are wanted: then only samples of the idle task are looked
        at.
        """
        pids = narrow_numbers(rows, "pid")
        suspects = (
            np.flatnonzero(pids == IDLE_TASK)
            if self._selection.states >= WORK
            else np.arange(len(pids))
        )
        stack_rows = self.stacks.rows(narrow_numbers(rows, "stack")[suspects].astype(np.int64))
        found = self.states.of(stack_rows, pids[suspects])
        passes = np.ones(rows.num_rows, dtype=np.bool_)
        passes[suspects] = np.isin(found, [int(state) for state in self._selection.states])
        return passes

    @cached_property
    def states(self) -> StackStates:
        return stack_states(self.stacks)

    @cached_property
    def _paths_match(self) -> Flags:
        """Of each stack, with one more, False, for a lost one."""
        return np.append(self.stacks.tree.on_path(self.matches), False)


def _keep(rows: pa.Table, passes: Flags, why: str, left_out: Counter[str]) -> pa.Table:
    if passes.all():
        return rows
    kept = rows.filter(pa.array(passes))
    left_out[why] += sum(
        int(narrow_numbers(table, "weight", 1).sum()) * sign
        for table, sign in ((rows, 1), (kept, -1))
    )
    return kept
