"""Bars and lines of exact width."""

import pytest

from necroscope.views.format import cells
from necroscope.views.tui.line import StyledSpan, bar, fit_line, spread, text_of
from necroscope.views.tui.screen import MODES, Modes


def modes(**shares: float) -> Modes:
    shares.setdefault("idle", 1 - sum(shares.values()))
    return Modes(tuple(shares.get(mode, 0.0) for mode in MODES))


def test_a_bar_shows_each_mode_by_its_letter() -> None:
    split = modes(
        system=0.2, irq=0.1, softirq=0.1, steal=0.1, user=0.1, nice=0.1, guest=0.1, iowait=0.1
    )
    assert text_of(bar(split, 10)) == "SSIQTungw."


def test_time_that_no_mode_accounts_for_is_shown_as_such() -> None:
    assert text_of(bar(modes(system=0.3, idle=0.3), 10)) == "SSS????..."


def test_a_few_percent_of_missing_time_mean_nothing() -> None:
    assert text_of(bar(modes(user=0.5, idle=0.46), 10)) == "uuuuu....."


def test_a_trace_of_a_mode_takes_no_cell_from_the_others() -> None:
    assert text_of(bar(modes(irq=0.004, user=0.96, idle=0.036), 10)) == "uuuuuuuuuu"


@pytest.mark.parametrize("width", [1, 7, 28])
def test_a_bar_is_exactly_as_wide_as_it_should_even_when_modes_overlap(width: int) -> None:
    assert len(text_of(bar(modes(system=0.6, user=0.6, idle=0.0), width))) == width


@pytest.mark.parametrize("width", range(12))
def test_lines_are_cut_and_padded_to_the_cell(width: int) -> None:
    assert cells(text_of(fit_line((StyledSpan("核心 "), StyledSpan("kubelet")), width))) == width


def test_what_stands_right_gives_way_to_what_stands_left() -> None:
    left, right = (StyledSpan("moment"),), (StyledSpan("0123456789"),)
    assert text_of(spread(left, right, 30)) == "moment              0123456789"
    assert text_of(spread(left, right, 17)) == "moment  01234567…"
    assert text_of(spread(left, right, 12)) == "moment      "
