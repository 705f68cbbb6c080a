"""Top functions and breakdowns of drawn recordings."""

from tests.drawn_recording import at, draw

from necroscope.store.choices import GroupBy
from necroscope.store.flame import read_flame
from necroscope.store.functions import Part, parts, top_functions
from necroscope.store.query import Store
from necroscope.store.selection import Selection

RECURSION = """
    cpu:  0     0     1     1
    pid:  7     7     8     9
          main  main  main  main
          walk  walk  walk  .
          walk  walk  leaf  .
          walk  leaf  walk  .
"""


def test_recursion_counts_once_per_stack(tmp_path):
    tree = read_flame(Store.open(draw(tmp_path / "r", RECURSION)), at(0), at(1))
    found = {f.frame.function: (f.self_weight, f.total_weight) for f in top_functions(tree)}
    assert found == {"walk": (2, 3), "leaf": (1, 2), "main": (1, 4)}


def test_functions_are_ranked_by_self_or_by_total(tmp_path):
    tree = read_flame(Store.open(draw(tmp_path / "r", RECURSION)), at(0), at(1))
    assert [f.frame.function for f in top_functions(tree, 1)] == ["walk"]
    heaviest = top_functions(tree, by_total=True)
    assert [f.frame.function for f in heaviest] == ["main", "walk", "leaf"]
    assert (heaviest[0].self_share, heaviest[0].total_share) == (0.25, 1.0)


def test_groups_are_no_functions(tmp_path):
    store = Store.open(draw(tmp_path / "r", RECURSION))
    grouped = read_flame(store, at(0), at(1), group_by=[GroupBy.PROCESS, GroupBy.CORE])
    assert top_functions(grouped) == top_functions(read_flame(store, at(0), at(1)))


def test_samples_spread_over_cores_and_processes(tmp_path):
    store = Store.open(draw(tmp_path / "r", RECURSION))
    assert parts(read_flame(store, at(0), at(1), group_by=[GroupBy.CORE])) == [
        Part("core 0", 2, 0.5),
        Part("core 1", 2, 0.5),
    ]
    by_process = read_flame(store, at(0), at(1), Selection.of(frames="^leaf$"), [GroupBy.PROCESS])
    assert parts(by_process) == [Part("sh (7)", 1, 0.5), Part("sh (8)", 1, 0.5)]


def test_nothing_has_no_functions(tmp_path):
    tree = read_flame(
        Store.open(draw(tmp_path / "r", "a")), at(50), at(60), group_by=[GroupBy.CORE]
    )
    assert (top_functions(tree), parts(tree)) == ([], [])
