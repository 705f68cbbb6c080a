"""The tree of stacks that all readers number by."""

import numpy as np
import pytest

from necroscope.interchange.capture import NO_PARENT, StackTree, distinct
from necroscope.model.frame import Frame


def numbers_of(tree: StackTree, *stacks: str) -> list[int]:
    """Stacks drawn as letters, outermost first."""
    frames = [tree.frame(Frame(letter, "m", "user", None, None)) for stack in stacks for letter in stack]
    return tree.stacks(np.array(frames, np.int32), np.array([len(stack) for stack in stacks], np.int64)).tolist()


def drawn(tree: StackTree, number: int) -> str:
    return "".join(frame.function or "" for frame in reversed(tree.frames_of(number)))


def test_each_stack_is_found_again_and_shares_its_callers() -> None:
    tree = StackTree()
    first = numbers_of(tree, "abc", "abd", "", "x", "abc")
    assert [drawn(tree, number) for number in first] == ["abc", "abd", "", "x", "abc"]
    assert len(tree) == 5
    assert numbers_of(tree, "ab", "abd") == [tree.parents[first[0]], first[1]]
    assert len(tree) == 5


def test_parent_comes_before_its_children() -> None:
    tree = StackTree()
    numbers_of(tree, "cba", "ab", "c", "cb", "abab")
    numbers_of(tree, "ababab", "d", "cbad")
    assert all(parent < number for number, parent in enumerate(tree.parents))


def test_stack_beyond_the_limit_is_cut_at_its_innermost_known_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("necroscope.interchange.capture.MOST_STACKS", 3)
    tree = StackTree()
    found = numbers_of(tree, "abcde", "x", "abc", "abz")
    assert [drawn(tree, number) for number in found] == ["abc", "", "abc", "ab"]
    assert found[1] == NO_PARENT
    assert tree.cut == 4
    assert len(tree) == 3


def test_distinct_has_the_first_place_of_each_value() -> None:
    values, places, inverse = distinct(np.array([5, 3, 5, 9, 3], np.uint64))
    assert values.tolist() == [3, 5, 9]
    assert places.tolist() == [1, 0, 3]
    assert inverse.tolist() == [1, 0, 1, 2, 0]
