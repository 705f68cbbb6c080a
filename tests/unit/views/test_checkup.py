"""A check-up as text: hostile names stay harmless, a plugin gets one short line."""

from necroscope.analysis.checkup.checkup import Checkup
from necroscope.analysis.checkup.finding import Finding, Level
from necroscope.views.checkup import render, render_plugin

HOSTILE = Finding("crash-loop", Level.PROBLEM, "\x1b[2Jevil.service crash-loops", ("a\nb",), "look")


def plain(text: str, colour: str) -> str:
    return text


def test_a_finding_shows_facts_and_the_way_out_and_no_escape_reaches_the_terminal() -> None:
    text = render(Checkup((HOSTILE,), ("no tracefs",)), plain)
    assert "\x1b" not in text
    assert text.startswith("PROBLEM: ")
    assert "  -> look" in text.splitlines()
    assert text.splitlines()[-1] == "not seen: no tracefs"


def test_a_well_node_says_so() -> None:
    assert render(Checkup((), ()), plain).startswith("well: ")
    assert render_plugin(Checkup((), ())) == "well"


def test_a_plugin_gets_one_line_that_says_how_many_more() -> None:
    line = render_plugin(Checkup((Finding("q", Level.PROBLEM, "x" * 200), HOSTILE), ()))
    assert len(line) == 80
    assert line.endswith("x (+1)")
