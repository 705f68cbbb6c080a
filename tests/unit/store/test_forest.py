"""Every operation on a forest against the same done path by path in plain Python."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from necroscope.store.forest import Forest, depths, is_outermost_of_its_frame, merge, on_path, split, totals, turned, with_callers


@st.composite
def nodes(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Parent and frame of up to 12 nodes; equal paths may be there more than once."""
    count = draw(st.integers(0, 12))
    parent = [draw(st.integers(-1, number - 1)) for number in range(count)]
    frame = [draw(st.integers(0, 3)) for _ in range(count)]
    return np.array(parent, dtype=np.int64), np.array(frame, dtype=np.int64)


def chain(parent, node: int) -> list[int]:
    """A node and its callers."""
    found = []
    while node >= 0:
        found.append(node)
        node = int(parent[node])
    return found


def path(parent, frame, node: int) -> tuple[int, ...]:
    return tuple(int(frame[n]) for n in reversed(chain(parent, node)))


def paths(forest: Forest) -> list[tuple[int, ...]]:
    return [path(forest.parent, forest.frame, node) for node in range(len(forest.parent))]


@settings(deadline=None)
@given(nodes())
def test_depths_flags_and_callers_follow_the_parents(drawn):
    parent, frame = drawn
    every = range(len(parent))
    assert depths(parent).tolist() == [len(path(parent, frame, node)) - 1 for node in every]
    assert on_path(parent, frame == 1).tolist() == [1 in path(parent, frame, node) for node in every]
    wanted = np.array([node for node in every if frame[node] == 2], dtype=np.int64)
    used = {caller for node in wanted.tolist() for caller in chain(parent, node)}
    assert set(np.flatnonzero(with_callers(parent, wanted)).tolist()) == used


@settings(deadline=None)
@given(nodes())
def test_merged_nodes_keep_their_paths_and_no_path_is_there_twice(drawn):
    parent, frame = drawn
    forest, node = merge(parent, frame)
    found = paths(forest)
    assert [found[n] for n in node.tolist()] == [path(parent, frame, n) for n in range(len(parent))]
    assert len(set(found)) == len(found)
    assert all(forest.parent[n] < n for n in range(len(found)))
    assert [len(p) - 1 for p in found] == [i for i, level in enumerate(forest.levels()) for _ in range(level.start, level.stop)]


@settings(deadline=None)
@given(nodes())
def test_totals_add_up_and_recursion_is_seen(drawn):
    forest, _ = merge(*drawn)
    weights = np.arange(1, len(forest.parent) + 1)
    found = paths(forest)
    expected = [sum(int(w) for p, w in zip(found, weights, strict=True) if p[: len(mine)] == mine) for mine in found]
    assert totals(forest, weights).tolist() == expected
    assert is_outermost_of_its_frame(forest).tolist() == [p[-1] not in p[:-1] for p in found]


@settings(deadline=None)
@given(nodes(), st.data())
def test_split_and_turned_keep_each_row_on_its_path_in_its_group(drawn, data):
    forest, _ = merge(*drawn)
    count = len(forest.parent)
    rows = data.draw(st.lists(st.tuples(st.integers(0, count - 1), st.integers(0, 2)), max_size=8)) if count else []
    node = np.array([n for n, _ in rows], dtype=np.int64)
    group = np.array([g for _, g in rows], dtype=np.int64)
    original = paths(forest)
    for grown, order in ((split(forest, node, group), 1), (turned(forest, node, group), -1)):
        kept = [path(np.maximum(grown.forest.parent, -1), grown.forest.frame, n) for n in range(len(grown.forest.parent))]
        assert [kept[n] for n in grown.node.tolist()] == [original[n][::order] for n in node.tolist()]
        assert [_group(grown.forest.parent, n) for n in grown.node.tolist()] == group.tolist()
        keys = [(_group(grown.forest.parent, n), p) for n, p in enumerate(kept)]
        prefixes = {(g, original[n][::order][: length + 1]) for n, g in rows for length in range(len(original[n]))}
        assert sorted(keys) == sorted(prefixes), "no path is there twice in a group, and none that no row has"


def _group(parent: np.ndarray, node: int) -> int:
    while node >= 0:
        node = int(parent[node])
    return -1 - node


def test_a_stack_10_000_deep_is_no_problem():
    depth = 10_000
    forest, node = merge(np.arange(-1, depth - 1), np.arange(depth) % 2)
    assert totals(forest, np.ones(depth, dtype=np.int64)).tolist() == list(range(depth, 0, -1))
    assert is_outermost_of_its_frame(forest).tolist() == [True, True] + [False] * (depth - 2)
    assert len(turned(forest, node[-1:], np.zeros(1, dtype=np.int64)).forest.parent) == depth
