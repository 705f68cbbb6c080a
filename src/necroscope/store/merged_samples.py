"""Samples of several segments as one window: each segment counts its own ids from 0, a window's
samples share one tree.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from necroscope.model.tables import TABLES
from necroscope.segment.arrow import empty, schema_of
from necroscope.segment.reader import SegmentReader
from necroscope.segment.window import rows_at
from necroscope.stacks.frames import first_alike
from necroscope.stacks.merge import merge
from necroscope.stacks.samples import SampleTables, numbers
from necroscope.stacks.segment_tree import segment_tree
from necroscope.stacks.tree import LOST, Numbers, Tree, compacted


def with_stacks(reader: SegmentReader, samples: pa.Table) -> SampleTables:
    """Samples of a segment with all its stacks and frames; without any samples these are not
    read.
    """
    tables = (
        reader.read(name, 0, 0) if samples.num_rows else empty(TABLES[name])
        for name in ("stacks", "frames")
    )
    return SampleTables(samples, *tables)


def merge_samples(parts: Sequence[SampleTables]) -> SampleTables:
    """Frames are one if all that is known of them is the same; stacks, if caller and frame are.
    Keeps what samples refer to.
    """
    parts = [part for part in parts if part.samples.num_rows]
    if not parts:
        return SampleTables(*(empty(TABLES[name]) for name in ("samples", "stacks", "frames")))
    samples = pa.concat_tables([part.samples for part in parts])
    segments = [segment_tree(part.stacks, part.frames) for part in parts]
    frames = pa.concat_tables([segment.frames for segment in segments])
    alike = first_alike(frames)
    trees, places, base = [], [], 0
    for segment, part in zip(segments, parts, strict=True):
        stack = segment.rows(numbers(part.samples, "stack"))
        tree, pruned = segment.tree.pruned(stack)
        trees.append(Tree(tree.parent, alike[tree.frame + base]))
        places.append((pruned, stack))
        base += segment.frames.num_rows
    tree, merged = _merge_trees(trees)
    # By way of the stacks, of which there are far fewer than samples.
    news = (np.append(new, LOST).astype(np.int32) for new in merged)
    stack_columns = [new[pruned][stack] for new, (pruned, stack) in zip(news, places, strict=True)]
    index = samples.schema.get_field_index("stack")
    used, frame = compacted(tree.frame, frames.num_rows)
    return SampleTables(
        samples.set_column(
            index, samples.schema.field(index), pa.chunked_array(stack_columns, pa.int32())
        ),
        pa.table([np.arange(len(tree)), tree.parent, frame], schema=schema_of(TABLES["stacks"])),
        rows_at(frames, used).set_column(
            0, schema_of(TABLES["frames"]).field(0), pa.array(np.arange(len(used)), pa.int32())
        ),
    )


def _merge_trees(trees: Sequence[Tree]) -> tuple[Tree, list[Numbers]]:
    """One whole segment has each stack once, after its caller: it stays as it is."""
    tree = trees[0]
    if len(trees) == 1 and (tree.parent < np.arange(len(tree))).all():
        keys = np.sort(tree.parent << 32 | tree.frame)
        if not (keys[1:] == keys[:-1]).any():
            return tree, [np.arange(len(tree))]
    return merge(*trees)
