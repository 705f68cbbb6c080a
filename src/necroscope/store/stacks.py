"""Stacks and frames of several segments as one: each segment counts its own ids from 0, a window's samples share one tree."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

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
    used = _used_stacks(parts)
    identities = np.append(_identities(frames), LOST)
    merged, tree_parents, tree_frames = _merge_tree(
        np.concatenate([part.parents for part in used]), identities[np.concatenate([part.frames for part in used])]
    )
    samples = pa.concat_tables([part.samples for part in parts])
    index = samples.schema.get_field_index("stack")
    stack = pa.chunked_array([pa.array(part.of_samples(merged)) for part in used], pa.int32())
    first_rows, kept = _renumbered(tree_frames, frames.num_rows)
    return SampleWindow(
        samples.set_column(index, samples.schema.field(index), stack),
        pa.table(
            [_count(len(kept)), pa.array(tree_parents, pa.int32()), pa.array(kept, pa.int32())],
            schema=schema_of(TABLES["stacks"]),
        ),
        rows_at(frames, first_rows).set_column(0, schema_of(TABLES["frames"]).field(0), _count(len(first_rows))),
    )


@dataclass(frozen=True, slots=True)
class _UsedStacks:
    """Stacks of one segment that its samples need; `parents` and `frames` are row numbers in all segments one after the other.

    `places` tells for each row of the segment's stacks, and last for LOST, its number among the used ones of all segments.
    """

    parents: Numbers
    frames: Numbers
    places: Numbers
    sample_rows: Numbers

    def of_samples(self, merged: Numbers) -> NDArray[np.int32]:
        """By way of the stacks, of which there are far fewer than samples."""
        numbers: NDArray[np.int32] = merged.astype(np.int32)[self.places][self.sample_rows]
        return numbers


def _used_stacks(parts: Sequence[SegmentSamples]) -> list[_UsedStacks]:
    found, stack_base, frame_base = [], 0, 0
    for part in parts:
        ids, parent_ids, frame_ids = (_numbers(part.stacks, name) for name in ("stack", "parent", "frame"))
        if not _are_row_numbers(ids):
            order = np.argsort(ids, kind="stable")
            ids, parent_ids, frame_ids = ids[order], parent_ids[order], frame_ids[order]
        sample_rows = _places(_numbers(part.samples, "stack"), ids)
        parent_rows = _places(parent_ids, ids)
        used = _with_parents(sample_rows, parent_rows)
        places = np.full(len(ids) + 1, LOST, dtype=np.int64)
        places[used] = stack_base + np.arange(len(used))
        parents = np.where(parent_ids[used] == -1, _ROOT, places[parent_rows[used]])
        frames = _shifted(_rows_of(frame_ids[used], _numbers(part.frames, "frame")), frame_base)
        found.append(_UsedStacks(parents, frames, places, sample_rows))
        stack_base, frame_base = stack_base + len(used), frame_base + part.frames.num_rows
    return found


def _merge_tree(parents: Numbers, frames: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """Merged number of each stack (of LOST: -1), then parent and frame by merged number, level by level from the outermost.

    A stack whose frame or caller is lost is never reached, and neither is a circle of callers.
    """
    # Two places more, so that LOST and _ROOT, which are negative, index those: no caller.
    merged = np.full(len(parents) + 2, -1, dtype=np.int64)
    if _is_merged(parents, frames):
        merged[: len(parents)] = np.arange(len(parents))
        return merged, np.where(parents == _ROOT, -1, parents), frames
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


def _is_merged(parents: Numbers, frames: Numbers) -> bool:
    """Whether nothing is lost, callers stand before what they call, and no stack is there twice: so in one whole segment."""
    if (parents == LOST).any() or (frames == LOST).any() or (parents >= np.arange(len(parents))).any():
        return False
    keys = np.sort((parents - _ROOT) << 32 | frames)
    return not (keys[1:] == keys[:-1]).any()


def _renumbered(rows: Numbers, count: int) -> tuple[Numbers, Numbers]:
    """The different rows in order, and for each row its place among them."""
    is_used = np.zeros(count, dtype=bool)
    is_used[rows] = True
    return np.flatnonzero(is_used), (np.cumsum(is_used) - 1)[rows]


def _identities(frames: pa.Table) -> Numbers:
    """For each frame the first row with the same identity."""
    numbers = np.zeros(frames.num_rows, dtype=np.int64)
    first = numbers
    unified = frames.unify_dictionaries()
    for name in _FRAME_IDENTITY:
        column = unified.column(name).combine_chunks()
        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        codes = column.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64) + 1
        _, first, numbers = np.unique(numbers * (len(column.dictionary) + 1) + codes, return_index=True, return_inverse=True)
    return first[numbers] if len(first) else first


def _with_parents(wanted: Numbers, parent_rows: Numbers) -> Numbers:
    """The wanted rows that are not LOST, and those of all their callers, in order."""
    # One place more, so that LOST, which is negative, marks that.
    used = np.zeros(len(parent_rows) + 1, dtype=bool)
    used[wanted] = True
    used[LOST] = False
    fresh = np.flatnonzero(used)
    while fresh.size:
        is_new = np.zeros_like(used)
        is_new[parent_rows[fresh]] = True
        is_new[LOST] = False
        is_new &= ~used
        used |= is_new
        fresh = np.flatnonzero(is_new)
    return np.flatnonzero(used)


def _are_row_numbers(ids: Numbers) -> bool:
    return bool((ids == np.arange(len(ids))).all())


def _places(wanted: Numbers, ids: Numbers) -> Numbers:
    """Place of each wanted id in the sorted ids, or LOST."""
    if not len(ids):
        return np.full(len(wanted), LOST, dtype=np.int64)
    if _are_row_numbers(ids):
        is_known = (wanted >= 0) & (wanted < len(ids))
        return wanted if is_known.all() else np.where(is_known, wanted, LOST)
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
    values = rows.column(column)
    numbers: Numbers = (values.fill_null(-3) if values.null_count else values).to_numpy().astype(np.int64)
    return numbers


def _count(rows: int) -> pa.Array:
    return pa.array(np.arange(rows), pa.int32())
