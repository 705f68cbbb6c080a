"""Merging keeps every sample on its path, whatever the segments call their stacks."""

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from necroscope.model.tables import TABLES
from necroscope.segment.arrow import batch_from_rows, empty
from necroscope.stacks.samples import SampleTables
from necroscope.store.merged_samples import merge_samples

FUNCTIONS = ["a", "b", "c", None]


def table(name: str, rows: list[tuple]) -> pa.Table:
    return (
        pa.Table.from_batches([batch_from_rows(TABLES[name], rows)])
        if rows
        else empty(TABLES[name])
    )


def segment(
    stacks: list[tuple], frames: list[str | None], samples: list[int], first_frame: int = 0
) -> SampleTables:
    frame_rows = [
        (first_frame + i, function, "m", "kernel", None, None) for i, function in enumerate(frames)
    ]
    sample_rows = [(i, 0, 1, 1, "c", None, stack, 1) for i, stack in enumerate(samples)]
    return SampleTables(
        table("samples", sample_rows), table("stacks", stacks), table("frames", frame_rows)
    )


def paths(window: SampleTables) -> list[tuple | None]:
    """Of each sample, outermost function first; None if its stack is lost."""
    functions = window.frames.column("function").to_pylist()
    known: dict[int, tuple] = {-1: ()}
    for row in window.stacks.to_pylist():
        known[row["stack"]] = (*known[row["parent"]], functions[row["frame"]])
    return [
        known[stack] if stack >= 0 else None for stack in window.samples.column("stack").to_pylist()
    ]


@st.composite
def segments(draw: st.DrawFn) -> tuple[SampleTables, list[tuple]]:
    """A segment with an interned tree of its own, and the paths its samples have."""
    frames = draw(st.permutations(FUNCTIONS))
    first_frame = draw(st.integers(0, 3))
    stacks: dict[tuple[int, int], int] = {}
    expected, samples = [], []
    for path in draw(
        st.lists(st.lists(st.sampled_from(FUNCTIONS), min_size=1, max_size=4), max_size=6)
    ):
        stack = -1
        for function in path:
            stack = stacks.setdefault((stack, first_frame + frames.index(function)), len(stacks))
        samples.append(stack)
        expected.append(tuple(path))
    rows = [(stack, parent, frame) for (parent, frame), stack in stacks.items()]
    return segment(draw(st.permutations(rows)), frames, samples, first_frame), expected


@settings(max_examples=150, deadline=None)
@given(st.lists(segments(), max_size=3))
def test_every_sample_keeps_its_path_and_no_path_is_there_twice(parts):
    window = merge_samples([part for part, _ in parts])
    expected = [path for _, part_paths in parts for path in part_paths]
    assert paths(window) == expected
    stacks = [(row["parent"], row["frame"]) for row in window.stacks.to_pylist()]
    assert len(set(stacks)) == len(stacks)
    prefixes = {path[:length] for path in expected for length in range(1, len(path) + 1)}
    assert len(stacks) == len(prefixes), "nothing that no sample refers to is kept"
    assert sorted(window.frames.column("function").to_pylist(), key=str) == sorted(
        {f for path in expected for f in path}, key=str
    )


def test_frames_differ_by_anything_that_is_known_of_them():
    rows = [
        ("f", "m", "user", None, None),
        ("f", "m", "user", None, "id"),
        ("f", "n", "user", None, None),
        (None, "m", "user", 1, None),
    ]
    rows += [(None, "m", "user", 2, None), ("f", "m", "kernel", None, None)]
    part = SampleTables(
        table("samples", [(i, 0, 1, 1, "c", None, i, 1) for i in range(len(rows))]),
        table("stacks", [(i, -1, i) for i in range(len(rows))]),
        table("frames", [(i, *row) for i, row in enumerate(rows)]),
    )
    window = merge_samples([part, part])
    assert window.frames.num_rows == window.stacks.num_rows == len(rows)


def test_stacks_that_cannot_be_followed_are_lost():
    circle = [(1, 2, 0), (2, 1, 0)]
    orphan = [(4, 3, 0), (5, 4, 0)]
    no_frame = [(6, -1, 99), (7, 6, 0)]
    window = merge_samples(
        [
            segment(
                [(0, -1, 0), *circle, *orphan, *no_frame], ["a"], [0, 1, 2, 4, 5, 6, 7, 8, -1, -7]
            )
        ]
    )
    assert paths(window) == [("a",), *[None] * 9]
