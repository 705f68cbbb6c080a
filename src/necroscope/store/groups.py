"""Groups of samples as the outermost frames of a flame graph: by process, thread, name, core,
cgroup or state.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from necroscope.model.frame import Frame
from necroscope.stacks.frames import GROUP
from necroscope.stacks.samples import codes
from necroscope.stacks.tree import LevelTree, Numbers
from necroscope.store.choices import GroupBy, State
from necroscope.store.stack_weights import IS_LEADER, STATE

KEYS: Final = {
    GroupBy.PROCESS: ("pid", "comm", IS_LEADER),
    GroupBy.THREAD: ("tid", "comm"),
    GroupBy.NAME: ("comm",),
    GroupBy.CORE: ("cpu",),
    GroupBy.CGROUP: ("cgroup",),
    GroupBy.STATE: (STATE,),
}


class GroupTree(NamedTuple):
    """The group frames, one for each row of the tree; the innermost group of each sample row,
    counted from 0, and its row.
    """

    tree: LevelTree
    frames: list[Frame]
    group: Numbers
    row_of_group: Numbers


def group_tree(rows: pa.Table, by: Sequence[GroupBy]) -> GroupTree:
    """Nested groups in the order of `by`; without any, all rows are of group 0, which has no
    row.
    """
    group = np.zeros(rows.num_rows, dtype=np.int64)
    row_of_group = np.full(1, -1, dtype=np.int64)
    parents, frames, starts = [row_of_group[:0]], [], [0]
    for dimension in by:
        label_of, labels = _label_rows(rows, dimension)
        found, group = np.unique(group * len(labels) + label_of, return_inverse=True)
        parents.append(row_of_group[found // len(labels)])
        frames += [
            Frame(labels[code], dimension.value, GROUP, None, None)
            for code in (found % len(labels)).tolist()
        ]
        row_of_group = starts[-1] + np.arange(len(found))
        starts.append(len(frames))
    return GroupTree(
        LevelTree(np.concatenate(parents), np.arange(len(frames)), starts),
        frames,
        group,
        row_of_group,
    )


def _label_rows(rows: pa.Table, dimension: GroupBy) -> tuple[Numbers, list[str]]:
    """The label of each row, by its place among the labels; the last is that of null."""
    numbers, dictionary = codes(rows.column(KEYS[dimension][0]))
    values = dictionary.to_pylist()
    numbers = np.where(numbers < 0, len(values), numbers)
    if dimension in (GroupBy.PROCESS, GroupBy.THREAD):
        names = _names(rows, KEYS[dimension])
        return numbers, [f"{names.get(value, '')} ({value})" for value in values] + ["unknown"]
    return numbers, [_label(dimension, value) for value in values] + [f"no {dimension.value}"]


def _label(dimension: GroupBy, value: Any) -> str:
    if dimension is GroupBy.CORE:
        return f"core {value}"
    return State(value).label if dimension is GroupBy.STATE else str(value)


def _names(rows: pa.Table, keys: Sequence[str]) -> dict[int, str]:
    """The name of each process or thread: that of the process's first thread if it was sampled,
    else the most sampled.
    """
    weights = (
        rows.group_by(list(keys), use_threads=False).aggregate([("weight", "sum")]).to_pylist()
    )
    order = sorted(
        weights, key=lambda row: (row.get(IS_LEADER, False), row["weight_sum"], row["comm"] or "")
    )
    return {row[keys[0]]: row["comm"] for row in order}
