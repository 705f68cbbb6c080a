"""The table of functions: cut to the terminal, complete without one, and harmless whatever the
names are.
"""

import pytest
from tests.unit.views.flame.conftest import draw_tree

from necroscope.model.frame import Frame
from necroscope.stacks.differential import compare
from necroscope.store.functions import FunctionWeight, Part, top_functions
from necroscope.views.flame.functions import (
    differential_json,
    differential_text,
    functions_json,
    functions_text,
    pair_functions,
)
from necroscope.views.flame.heading import Heading, HeadingWindow
from necroscope.views.format import cells

HOSTILE = "<b>\x1b[31m\u202e" + "界" * 80
HEADING = Heading("t", "node-7", HeadingWindow(0, 5_000_000_000, 100), left_out=("a gap",))


def function(name: str, own: int, total: int, module: str = "[kernel]") -> FunctionWeight:
    return FunctionWeight(
        Frame(name, module, "kernel", None, None), own, total, own / 100, total / 100
    )


FUNCTIONS = [
    function("walk", 60, 70),
    function(HOSTILE, 30, 30, "/opt/" + HOSTILE),
    function("rare", 1, 1),
]


def test_a_line_says_self_total_and_where_from():
    lines = functions_text(FUNCTIONS, HEADING, top=30).splitlines()
    assert (
        lines[0]
        == "node-7, all cores: 1970-01-01T00:00:00.000Z to 1970-01-01T00:00:05.000Z (5 s), 100"
        " samples"
    )
    assert lines[2] == "   self   total   samples  function"
    assert lines[3] == "  60.0%   70.0%        60  walk  [kernel]"


@pytest.mark.parametrize("width", [200, 80, 40, 10])
def test_lines_fit_the_terminal(width):
    lines = functions_text(FUNCTIONS, HEADING, top=30, width=width).splitlines()[3:]
    assert max(map(cells, lines)) <= max(width, 28)
    assert not [line for line in lines if "\x1b" in line or "\u202e" in line]


def test_without_a_terminal_nothing_is_cut_but_all_is_escaped():
    line = functions_text(FUNCTIONS, HEADING, top=30).splitlines()[4]
    assert "界" * 80 in line
    assert r"<b>\x1b[31m\u202e" in line


def test_what_is_not_shown_is_counted():
    groups = [Part("core 3", 60, 0.6), Part("core 4", 40, 0.4)]
    lines = functions_text(FUNCTIONS, HEADING, groups=groups, top=1).splitlines()
    assert lines[2:4] == ["  60.0%        60  core 3", "and 1 more groups: see --top, --json"]
    assert lines[-1] == "and 2 more functions: see --top, --json"


def test_json_has_all_and_what_was_left_out():
    found = functions_json(FUNCTIONS, HEADING, [Part("core\x07 3", 60, 0.6)])
    assert [each["self"] for each in found["functions"]] == [60, 30, 1]
    assert found["left_out"] == ["a gap"]
    assert found["groups"] == [{"label": r"core\x07 3", "samples": 60, "share": 0.6}]


def test_functions_of_both_windows_come_by_the_change_of_their_share():
    trees = draw_tree("main>stat>walk' 60\nmain>read 40"), draw_tree("main>read 5\nmain>sync 5")
    pairs = pair_functions(top_functions(trees[0]), top_functions(trees[1]))
    assert {pair[0].function for pair in pairs[:2]} == {"stat", "walk"}
    assert [pair[0].function for pair in pairs[2:]] == ["sync", "read", "main"]
    heading = Heading("t", "n", HeadingWindow(0, 1, 100), baseline=HeadingWindow(0, 1, 10))
    lines = differential_text(pairs, compare(*trees), heading, top=3).splitlines()
    assert "   60.0%        –   +60.0%  walk  [kernel]" in lines
    assert "       –    50.0%   -50.0%  sync  /bin/app" in lines
    assert "and 2 more functions: see --top, --json" in lines
    assert "   60.0%  main → stat" in lines
    found = differential_json(pairs, compare(*trees), heading)
    assert [path["path"] for path in found["vanished"]] == [["main", "sync"]]
