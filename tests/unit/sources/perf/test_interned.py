"""Stacks as a tree: each distinct frame and stack has one number in a segment."""

import pytest

from necroscope.model.frame import Frame
from necroscope.sources.perf import interned as interned_module
from necroscope.sources.perf.interned import NO_PARENT, Interned


def frames(text: str) -> list[Frame]:
    return [Frame(name, "/app", "user", None, None) for name in text.split()]


def stack_of(interned: Interned, text: str) -> int:
    return interned.stack([interned.frame(frame) for frame in frames(text)])


def test_the_same_stack_has_the_same_number() -> None:
    interned = Interned()
    assert stack_of(interned, "main run walk") == stack_of(interned, "main run walk")
    assert stack_of(interned, "main run") != stack_of(interned, "main run walk")


def test_stacks_share_what_they_have_in_common() -> None:
    interned = Interned()
    stack_of(interned, "main run walk")
    stack_of(interned, "main run sleep")
    frame_rows, stack_rows = interned.take_rows()
    assert [row[1] for row in frame_rows] == ["main", "run", "walk", "sleep"]
    assert stack_rows == [(0, NO_PARENT, 0), (1, 0, 1), (2, 1, 2), (3, 1, 3)]


def test_a_parents_number_is_smaller_than_its_childrens() -> None:
    interned = Interned()
    for text in ("a b c", "b a", "a b d e", "c"):
        stack_of(interned, text)
    assert all(parent < stack for stack, parent, _ in interned.take_rows()[1])  # type: ignore[operator]


def test_frames_of_gives_back_the_stack_innermost_first() -> None:
    interned = Interned()
    number = stack_of(interned, "main run walk")
    assert interned.frames_of(number) == frames("main run walk")[::-1]
    assert interned.frames_of(interned.stack([])) == []


def test_frames_on_top_of_a_stack_make_the_same_stack_as_all_frames_together() -> None:
    interned = Interned()
    main, run, walk = [interned.frame(frame) for frame in frames("main run walk")]
    parent = interned.stack([main])
    assert interned.stack([run, walk], parent) == interned.stack([main, run, walk])
    assert interned.stack([], parent) == parent


def test_child_is_known_once_its_stack_was_seen_in_this_segment() -> None:
    interned = Interned()
    main, run = [interned.frame(frame) for frame in frames("main run")]
    assert interned.child(NO_PARENT, main) is None
    parent = interned.stack([main])
    assert interned.child(NO_PARENT, main) == parent
    assert interned.child(parent, run) is None
    seen = interned.stack([main, run])
    assert interned.child(parent, run) == seen
    assert interned.child(parent, main) is None
    interned.start_segment()
    assert interned.child(NO_PARENT, main) is None


def test_frames_keep_their_number_over_segments() -> None:
    interned = Interned()
    numbers = [interned.frame(frame) for frame in frames("main run")]
    interned.start_segment()
    assert [interned.frame(frame) for frame in frames("main run")] == numbers
    assert interned.frames_known == 2


def test_recursion_is_as_deep_as_it_was() -> None:
    interned = Interned()
    assert len(interned.frames_of(stack_of(interned, "f f f f"))) == 4
    assert len(interned.take_rows()[0]) == 1


def test_rows_are_taken_once() -> None:
    interned = Interned()
    stack_of(interned, "main")
    interned.take_rows()
    stack_of(interned, "main")
    assert interned.take_rows() == ([], [])


def test_frames_differ_by_everything_that_identifies_them() -> None:
    interned = Interned()
    one = Frame(None, "/app", "user", 16, "b1d")
    for other in (one, one._replace(offset=32), one._replace(module="/other"), one._replace(build_id=None)):
        interned.stack([interned.frame(other)])
    assert len(interned.take_rows()[0]) == 4


def test_numbers_begin_again_with_a_segment() -> None:
    interned = Interned()
    stack_of(interned, "main")
    stack_of(interned, "run")
    interned.start_segment()
    assert stack_of(interned, "other inner") == 1
    assert interned.frames_of(1) == frames("inner other")
    assert interned.take_rows()[1] == [(0, NO_PARENT, 0), (1, 0, 1)]


def test_it_says_when_a_segment_holds_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interned_module, "MOST_STACKS", 3)
    interned = Interned()
    stack_of(interned, "a b")
    assert not interned.is_full
    stack_of(interned, "a c")
    assert interned.is_full
    interned.start_segment()
    assert not interned.is_full
