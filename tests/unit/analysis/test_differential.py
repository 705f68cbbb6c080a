"""What came and what vanished on a core."""

from tests.drawn_node import HZ, at, drawn_node

from necroscope.analysis.differential import compare_stacks
from necroscope.analysis.functions import FunctionNames
from necroscope.analysis.stacks import Stacks, stacks_of

PICTURE = """
    core 0:  uuuuuuuuuuxxxxxxxxxx
    u: user  trainer[7]  /  main, step
    x: system  tool[4]  /  main, one > ksys_ioctl, walk, left
    x: system  tool[4]  /  start, two > ksys_ioctl, walk, right
"""


def stacks(from_s: float, to_s: float) -> Stacks:
    return whole().where([0], [(at(from_s), at(to_s))])


def whole() -> Stacks:
    return stacks_of(drawn_node(PICTURE).samples(at(0), at(20)), FunctionNames(), 20.0, 1 / HZ)


def test_a_path_that_appears_is_told_to_where_it_spreads() -> None:
    everything = whole()
    found = compare_stacks(
        everything.where([0], [(at(10), at(20))]), everything.where([0], [(at(0), at(10))])
    )
    grown = found.grown[0]
    assert grown.path == ("ksys_ioctl", "walk")
    assert (round(grown.now, 1), round(grown.before, 1)) == (1.0, 0.0)


def test_a_path_that_vanishes_counts_too() -> None:
    everything = whole()
    found = compare_stacks(
        everything.where([0], [(at(10), at(20))]), everything.where([0], [(at(0), at(10))])
    )
    assert found.shrunk[0].path == ("main", "step")
    assert found.shrunk[0].now == 0


def test_what_stays_is_not_told() -> None:
    found = compare_stacks(stacks(0, 5), stacks(5, 10))
    assert (found.grown, found.shrunk) == ((), ())
