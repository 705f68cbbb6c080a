"""Comparisons of drawn windows."""

from collections.abc import Sequence

import numpy as np
import pytest
from tests.drawn_recording import at, draw

from necroscope.stacks.differential import DifferentialTree, PerWhat, compare
from necroscope.store.choices import GroupBy
from necroscope.store.flame import read_flame
from necroscope.store.query import Store

RECORDING = """
    time:  0     1     2     3     10    11      11.5
           main  main  main  main  main  main    main
           read  read  work  old   read  new     new
           .     .     .     deep  .     deeper@kernel  deeper@kernel
           .     .     .     .     .     .       deepest@kernel
"""


def differential(
    store: Store,
    window: tuple[int, int],
    baseline: tuple[int, int],
    group_by: Sequence[GroupBy] = (),
    **how,
) -> DifferentialTree:
    return compare(
        *(read_flame(store, *span, group_by=group_by) for span in (window, baseline)), **how
    )


def names(tree: DifferentialTree, rows: Sequence[int]) -> list[list[str]]:
    return [[tree.frames[frame].function for frame in path] for path in tree.paths(rows)]


@pytest.fixture
def tree(tmp_path):
    store = Store.open(draw(tmp_path / "r", RECORDING, until=12))
    return differential(store, (at(10), at(12)), (at(0), at(4)))


def by_path(tree, values) -> dict[str, float]:
    return {";".join(path): values[row] for row, path in enumerate(names(tree, range(len(tree))))}


def test_shares_make_windows_of_unequal_length_comparable(tree):
    window, baseline = by_path(tree, tree.window.share), by_path(tree, tree.baseline.share)
    assert (window["main"], baseline["main"]) == (1, 1)
    assert (window["main;read"], baseline["main;read"]) == (1 / 3, 2 / 4)
    assert by_path(tree, tree.window.total)["main;new"] == 2
    assert by_path(tree, tree.window.own)["main;new;deeper"] == 1
    assert by_path(tree, tree.baseline.own)["main;read"] == 2


def test_it_descends_into_new_code(tree):
    window, baseline = by_path(tree, tree.window.total), by_path(tree, tree.baseline.total)
    assert window["main;new;deeper;deepest"] == 1
    assert baseline["main;new;deeper;deepest"] == 0
    assert names(tree, tree.appeared()) == [["main", "new"]]


def test_what_vanished_is_there_too(tree):
    assert by_path(tree, tree.baseline.total)["main;old;deep"] == 1
    assert by_path(tree, tree.window.total)["main;old;deep"] == 0
    assert sorted(names(tree, tree.vanished())) == [["main", "old"], ["main", "work"]]


def test_appeared_paths_are_ranked_and_a_new_root_is_one(tmp_path):
    store = Store.open(
        draw(tmp_path / "r", "time: 0  1  1.1  1.2\n a  b  a  b\n .  x  y  x", until=2)
    )
    tree = differential(store, (at(1), at(2)), (at(0), at(1)))
    assert names(tree, tree.appeared()) == [["b"], ["a", "y"]]
    store = Store.open(
        draw(tmp_path / "other", "time: 0  1  1.1  1.2\n a  b  a  a\n .  x  y  y", until=2)
    )
    tree = differential(store, (at(1), at(2)), (at(0), at(1)))
    assert names(tree, tree.appeared()) == [["a", "y"], ["b"]]


def test_per_second_shows_a_load_that_grew_evenly(tmp_path):
    store = Store.open(
        draw(tmp_path / "r", "time: 0  1  10  10.2  10.4  10.6\n a  a  a  a  a  a", until=12)
    )
    tree = differential(store, (at(10), at(11)), (at(0), at(2)), per=PerWhat.SECOND)
    assert (tree.window.share[0], tree.baseline.share[0]) == (4, 1)


def test_an_empty_side_has_no_shares_and_says_why(tmp_path):
    store = Store.open(draw(tmp_path / "r", "time: 0  1\n a  a"))
    tree = differential(store, (at(0), at(2)), (at(50), at(60)))
    assert tree.baseline.share.tolist() == [0]
    assert [tree.frames[tree.frame[n]].function for n in tree.appeared()] == ["a"]
    assert tree.left_out[-1].startswith("baseline: ")
    assert tree.left_out[-1].endswith("nothing was recorded")


def test_a_crash_loop_is_one_name_whatever_its_pids(tmp_path):
    store = Store.open(
        draw(tmp_path / "r", "time: 0  1\n pid: 7  8\n comm: agent  agent\n a  a", until=2)
    )
    by_name = differential(store, (at(1), at(2)), (at(0), at(1)), group_by=[GroupBy.NAME])
    assert by_name.appeared() == []
    by_process = differential(store, (at(1), at(2)), (at(0), at(1)), group_by=[GroupBy.PROCESS])
    assert len(by_process.appeared()) == 1


def test_parents_stand_before_their_children(tree):
    assert (tree.parent < np.arange(len(tree.parent))).all()
