"""Stacks and frames of several segments as one: each segment counts its own ids from 0, a window's samples share one tree."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from necroscope.model.tables import TABLES
from necroscope.segment.arrow import empty, schema_of
from necroscope.segment.window import Numbers, rows_at

# Row number of what cannot be known, because the rows that said so are in a gap.
LOST: Final = -1
_ROOT: Final = -2
_FRAME_IDENTITY: Final = ("function", "module", "kind", "offset", "build_id")


@dataclass(frozen=True, slots=True)
class SampleWindow:
    """A sample's `stack` is a row number of `stacks`, a stack's `frame` one of `frames`; stack -1 was lost in a gap."""

    samples: pa.Table
    stacks: pa.Table
    frames: pa.Table


@dataclass(frozen=True, slots=True)
class SegmentSamples:
    """What one segment gives to a window: samples in the window, and all its stacks and frames."""

    samples: pa.Table
    stacks: pa.Table
    frames: pa.Table


def merge(parts: Sequence[SegmentSamples]) -> SampleWindow:
    """Frames are one if all that is known of them is the same; stacks, if caller and frame are. Keeps what samples refer to."""
    parts = [part for part in parts if part.samples.num_rows]
    if not parts:
        return SampleWindow(empty(TABLES["samples"]), empty(TABLES["stacks"]), empty(TABLES["frames"]))
    frames = pa.concat_tables([part.frames for part in parts])
    parents, frame_rows, sample_rows = _rows_in_all(parts)
    merged, tree_parents, tree_frames = _merge_tree(parents, np.append(_identities(frames), LOST)[frame_rows])
    samples = pa.concat_tables([part.samples for part in parts])
    index = samples.schema.get_field_index("stack")
    stack = pa.array(merged[sample_rows], pa.int32())
    first_rows, kept = np.unique(tree_frames, return_inverse=True)
    return SampleWindow(
        samples.set_column(index, samples.schema.field(index), stack),
        pa.table(
            [_count(len(kept)), pa.array(tree_parents, pa.int32()), pa.array(kept, pa.int32())],
            schema=schema_of(TABLES["stacks"]),
        ),
        rows_at(frames, first_rows).set_column(0, schema_of(TABLES["frames"]).field(0), _count(len(first_rows))),
    )


def _rows_in_all(parts: Sequence[SegmentSamples]) -> tuple[Numbers, Numbers, Numbers]:
    """Parent and frame of the used stacks, and stack of the samples, as row numbers in all parts one after the other."""
    parents, frames, stacks, stack_base, frame_base = [], [], [], 0, 0
    for part in parts:
        ids, parent_ids, frame_ids = (_numbers(part.stacks, name) for name in ("stack", "parent", "frame"))
        order = np.argsort(ids, kind="stable")
        sample_stacks = _numbers(part.samples, "stack")
        used = order[_with_parents(np.unique(sample_stacks), ids[order], parent_ids[order])]
        parent_rows = _shifted(_places(parent_ids[used], ids[used]), stack_base)
        parents.append(np.where(parent_ids[used] == -1, _ROOT, parent_rows))
        frames.append(_shifted(_rows_of(frame_ids[used], _numbers(part.frames, "frame")), frame_base))
        stacks.append(_shifted(_places(sample_stacks, ids[used]), stack_base))
        stack_base, frame_base = stack_base + len(used), frame_base + part.frames.num_rows
    return np.concatenate(parents), np.concatenate(frames), np.concatenate(stacks)


def _merge_tree(parents: Numbers, frames: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """Merged number of each stack (of LOST: -1), then parent and frame by merged number, level by level from the outermost.

    A stack whose frame or caller is lost is never reached, and neither is a circle of callers.
    """
    # Two places more, so that LOST and _ROOT, which are negative, index those: no caller.
    merged = np.full(len(parents) + 2, -1, dtype=np.int64)
    tree_parents, tree_frames, count = [], [], 0
    level = np.flatnonzero((parents == _ROOT) & (frames != LOST))
    while level.size:
        keys, place = np.unique((merged[parents[level]] + 1) << 32 | frames[level], return_inverse=True)
        merged[level] = count + place
        tree_parents.append((keys >> 32) - 1)
        tree_frames.append(keys & 0xFFFF_FFFF)
        count += len(keys)
        in_level = np.zeros(len(merged), dtype=bool)
        in_level[level] = True
        level = np.flatnonzero(in_level[parents] & (frames != LOST))
    nothing = [np.zeros(0, dtype=np.int64)]
    return merged, np.concatenate(tree_parents or nothing), np.concatenate(tree_frames or nothing)


def _identities(frames: pa.Table) -> Numbers:
    """For each frame the first row with the same identity."""
    numbers = np.zeros(frames.num_rows, dtype=np.int64)
    first = numbers
    for name in _FRAME_IDENTITY:
        column = frames.unify_dictionaries().column(name).combine_chunks()
        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        codes = column.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64) + 1
        _, first, numbers = np.unique(numbers * (len(column.dictionary) + 1) + codes, return_index=True, return_inverse=True)
    return first[numbers] if len(first) else first


def _with_parents(wanted: Numbers, ids: Numbers, parents: Numbers) -> Numbers:
    """Places of the wanted stacks and all their callers in the sorted ids."""
    used = np.zeros(len(ids), dtype=bool)
    places = _places(wanted, ids)
    while places.size:
        used[places[places != LOST]] = True
        places = np.unique(_places(parents[places[places != LOST]], ids))
        places = places[(places != LOST) & ~used[places]] if len(ids) else places[:0]
    return np.flatnonzero(used)


def _places(wanted: Numbers, ids: Numbers) -> Numbers:
    """Place of each wanted id in the sorted ids, or LOST."""
    if not len(ids):
        return np.full(len(wanted), LOST, dtype=np.int64)
    places = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
    return np.where(ids[places] == wanted, places, LOST)


def _rows_of(wanted: Numbers, ids: Numbers) -> Numbers:
    """Row of each wanted id in ids that need not be sorted, or LOST."""
    order = np.append(np.argsort(ids, kind="stable"), LOST)
    return order[_places(wanted, ids[order[:-1]])]


def _shifted(rows: Numbers, base: int) -> Numbers:
    return np.where(rows == LOST, LOST, rows + base)


def _numbers(rows: pa.Table, column: str) -> Numbers:
    """A column of ids; a null is an id that nothing has."""
    numbers: Numbers = rows.column(column).fill_null(-3).to_numpy().astype(np.int64)
    return numbers


def _count(rows: int) -> pa.Array:
    return pa.array(np.arange(rows), pa.int32())
