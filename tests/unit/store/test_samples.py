"""Samples one by one: the same choice as a flame graph makes, over segments, and bounded."""

import pytest
from tests.drawn_recording import at, draw

from necroscope.errors import UsageError
from necroscope.store.choices import State
from necroscope.store.flame import read_flame
from necroscope.store.query import Store
from necroscope.store.samples import read_samples
from necroscope.store.selection import Selection
from necroscope.store.time_limit import TimeLimit

FIRST = """
    time:  0.0   0.1       0.2             0.3
    cpu:   0     1         0               1
    pid:   7     8         0               0
    comm:  sh    worker    swapper/0       swapper/1
           main  main      start@kernel    start@kernel
           read  run       irq@kernel      default_idle@kernel
"""
SECOND = """
    time:  10.0  10.1
    cpu:   1     0
           main  main
           read  other
"""


@pytest.fixture
def store(tmp_path) -> Store:
    return Store.open(draw(tmp_path / "recording", FIRST, SECOND, live=1))


@pytest.mark.parametrize(
    "selection",
    [
        Selection(),
        Selection.of(cpus=[0]),
        Selection.of(comms=["worker"]),
        Selection.of(states=[State.INTERRUPT]),
        Selection.of(states=list(State)),
        Selection.of(frames="read|irq"),
        Selection.of(pids=[99]),
    ],
)
def test_the_same_samples_as_in_a_flame_graph_are_chosen(store, selection):
    found = read_samples(store, at(0), at(11), selection)
    tree = read_flame(store, at(0), at(11), selection)
    assert found.count == tree.samples
    assert (found.from_ns, found.to_ns, found.left_out) == (tree.from_ns, tree.to_ns, tree.left_out)


def test_stacks_of_several_segments_are_one_tree(store):
    tables = read_samples(store, at(0), at(11)).tables
    samples = tables.samples.to_pylist()
    assert [row["time"] for row in samples] == [at(0), at(0.1), at(0.2), at(10), at(10.1)]
    assert samples[0]["stack"] == samples[3]["stack"], "main, read in both segments"
    names = [row["function"] for row in tables.frames.to_pylist()]
    stacks = tables.stacks.to_pylist()
    assert names[stacks[samples[4]["stack"]]["frame"]] == "other"


def test_more_samples_than_can_be_written_are_refused(store):
    assert read_samples(store, at(0), at(11), most=5).count == 5
    with pytest.raises(UsageError, match="more than 4 samples"):
        read_samples(store, at(0), at(11), most=4)


def test_the_time_limit_is_kept_and_told(store):
    ticks = iter(range(100))
    found = read_samples(store, at(0), at(11), limit=TimeLimit(2, clock=lambda: next(ticks)))
    assert found.count < 5
    assert any("time limit of 2 s" in words for words in found.left_out)
