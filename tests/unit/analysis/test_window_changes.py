"""Two stretches of a node, compared."""

from tests.drawn_node import at, drawn_node

from necroscope.analysis.window_changes import window_changes
from necroscope.model.span import Span
from necroscope.views.window_changes_text import window_changes_to_text

# The first ten seconds are quiet, then core 1 is in the kernel.
PICTURE = """
core 0:  u.u.u.u.u.u.u.u.u.u.
core 1:  ..........ssssssssss
u: user  python[7]  /app  main, run
s: system  kubelet[1872]  /system.slice/kubelet.service  main, Read > ksys_read, odd_walk
"""
NOW, BEFORE = Span(at(10), at(20)), Span(at(0), at(10))


def test_what_came_is_named_by_core_program_and_path() -> None:
    found = window_changes(drawn_node(PICTURE), NOW, BEFORE)
    assert found.cores[0].what == "core 1 system"
    assert found.cores[0].before < 0.05
    assert found.cores[0].now > 0.9
    assert found.programs[0].what == "kubelet"
    assert 0.8 < found.programs[0].now <= 1.1
    assert found.grown[0].path[-1] == "odd_walk"
    text = window_changes_to_text(found)
    assert "core 1 system" in text
    assert "odd_walk" in text


def test_what_went_is_named_too() -> None:
    found = window_changes(drawn_node(PICTURE), BEFORE, NOW)
    assert (found.programs[0].what, found.programs[0].now) == ("kubelet", 0.0)
    assert found.shrunk[0].path[-1] == "odd_walk"


def test_two_stretches_alike_have_no_line() -> None:
    found = window_changes(drawn_node(PICTURE), Span(at(2), at(6)), Span(at(6), at(10)))
    assert found.is_empty
    assert "Nothing changed" in window_changes_to_text(found)


def test_another_core_is_left_out_when_one_is_asked_about() -> None:
    found = window_changes(drawn_node(PICTURE), NOW, BEFORE, cpu=0)
    assert not [one for one in found.cores if one.what.startswith("core 1")]
    assert "kubelet" not in [one.what for one in found.programs]


def test_an_event_of_a_kind_that_the_baseline_had_is_not_new() -> None:
    node = drawn_node(PICTURE)
    for second, kind in ((5, "unit_restart"), (12, "unit_restart"), (13, "nic_reset")):
        node.event(second, kind, f"{kind} \x1b[31m")
    found = window_changes(node, NOW, BEFORE)
    assert [one.kind for one in found.events] == ["nic_reset"]
    assert "\x1b" not in window_changes_to_text(found)
