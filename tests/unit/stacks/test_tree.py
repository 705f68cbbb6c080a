"""Every operation on a tree against the same done path by path in plain Python."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from necroscope.stacks.merge import merge, split, tree_of, turned
from necroscope.stacks.tree import LOST, Tree


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    """Up to 12 rows; equal paths may be there more than once, and callers after what they call."""
    count = draw(st.integers(0, 12))
    order = np.array([*draw(st.permutations(range(count))), LOST], dtype=np.int64)
    parent, frame = np.zeros((2, count), dtype=np.int64)
    for row in range(count):
        parent[order[row]] = order[draw(st.integers(-1, row - 1))]
        frame[row] = draw(st.integers(0, 3))
    return Tree(parent, frame)


def chain(parent: np.ndarray, row: int) -> list[int]:
    """A row and its callers."""
    found = []
    while row >= 0:
        found.append(row)
        row = int(parent[row])
    return found


def paths(tree: Tree) -> list[tuple[int, ...]]:
    return [
        tuple(int(tree.frame[n]) for n in reversed(chain(tree.parent, row)))
        for row in range(len(tree))
    ]


@settings(deadline=None)
@given(trees())
def test_paths_depths_flags_and_callers_follow_the_parents(tree):
    expected = paths(tree)
    assert [tuple(path) for path in tree.paths(range(len(tree)))] == expected
    assert list(tree.paths([LOST])) == [[]]
    assert tree.depths().tolist() == [len(path) - 1 for path in expected]
    assert tree.on_path(tree.frame == 1).tolist() == [1 in path for path in expected]
    wanted = np.flatnonzero(tree.frame == 2)
    used = sorted({caller for row in wanted.tolist() for caller in chain(tree.parent, row)})
    assert tree.with_callers(np.array([LOST, *wanted, *wanted])).tolist() == used
    pruned, new = tree.pruned(wanted)
    assert [tuple(path) for path in pruned.paths(new[used].tolist())] == [
        expected[row] for row in used
    ]
    assert len(pruned) == len(used)
    assert new[LOST] == LOST


@settings(deadline=None)
@given(st.lists(trees(), min_size=1, max_size=3))
def test_merged_rows_keep_their_paths_and_no_path_is_there_twice(parts):
    tree, rows = merge(*parts)
    found = paths(tree)
    assert [[found[row] for row in new.tolist()] for new in rows] == [paths(part) for part in parts]
    assert len(set(found)) == len(found)
    assert all(tree.parent[row] < row for row in range(len(found)))
    assert [len(p) - 1 for p in found] == [
        i for i, level in enumerate(tree.levels()) for _ in range(level.start, level.stop)
    ]


@settings(deadline=None)
@given(trees())
def test_totals_add_up_and_recursion_is_seen(drawn):
    tree, (rows,) = merge(drawn)
    weights = drawn.sums(np.arange(len(drawn)), np.arange(1, len(drawn) + 1))
    found = paths(tree)
    own = tree.sums(rows, weights)
    expected = [
        sum(int(w) for p, w in zip(found, own, strict=True) if p[: len(mine)] == mine)
        for mine in found
    ]
    assert tree.totals(own).tolist() == expected
    assert Tree(tree.parent, tree.frame).totals(own).tolist() == expected
    assert tree.is_outermost_of_its_frame().tolist() == [p[-1] not in p[:-1] for p in found]


@settings(deadline=None)
@given(st.lists(st.lists(st.integers(0, 3), max_size=4), max_size=6))
def test_a_tree_of_paths_has_each_of_them_and_no_other(drawn):
    tree, ends = tree_of(drawn)
    assert list(tree.paths(ends.tolist())) == drawn
    assert sorted(paths(tree)) == sorted(
        {tuple(path[:end]) for path in drawn for end in range(1, len(path) + 1)}
    )


@settings(deadline=None)
@given(trees(), st.data())
def test_split_and_turned_keep_each_row_on_its_path_in_its_group(drawn, data):
    tree, _ = merge(drawn)
    count = len(tree)
    rows = (
        data.draw(st.lists(st.tuples(st.integers(0, count - 1), st.integers(0, 2)), max_size=8))
        if count
        else []
    )
    row = np.array([n for n, _ in rows], dtype=np.int64)
    group = np.array([g for _, g in rows], dtype=np.int64)
    original = paths(tree)
    for grown, order in ((split(tree, row, group), 1), (turned(tree, row, group), -1)):
        kept = paths(grown.tree)
        assert [kept[n] for n in grown.row.tolist()] == [original[n][::order] for n in row.tolist()]
        assert [_group(grown.tree.parent, n) for n in grown.row.tolist()] == group.tolist()
        keys = [(_group(grown.tree.parent, n), p) for n, p in enumerate(kept)]
        prefixes = {
            (g, original[n][::order][: length + 1])
            for n, g in rows
            for length in range(len(original[n]))
        }
        assert sorted(keys) == sorted(prefixes), (
            "no path is there twice in a group, and none that no row has"
        )


def _group(parent: np.ndarray, row: int) -> int:
    while row >= 0:
        row = int(parent[row])
    return -1 - row


def test_a_stack_10_000_deep_is_no_problem():
    depth = 10_000
    tree, (rows,) = merge(Tree(np.arange(-1, depth - 1), np.arange(depth) % 2))
    assert tree.totals(np.ones(depth, dtype=np.int64)).tolist() == list(range(depth, 0, -1))
    assert tree.is_outermost_of_its_frame().tolist() == [True, True] + [False] * (depth - 2)
    assert len(turned(tree, rows[-1:], np.zeros(1, dtype=np.int64)).tree) == depth
