"""Numbers and hostile names in a few cells."""

import pytest

from necroscope.views.format import (
    brief_duration,
    cells,
    count,
    fit,
    fit_right,
    fit_tail,
    literal,
    percent,
    sparkline,
    time_of_day,
)


def test_what_is_missing_is_a_dash_and_never_zero() -> None:
    assert (percent(None), count(None), brief_duration(None)) == ("–", "–", "–")
    assert (percent(0.0), count(0), brief_duration(0)) == ("0%", "0", "0 µs")


@pytest.mark.parametrize(
    ("duration_ns", "text"),
    [
        (84_000, "84 µs"),
        (999_499, "999 µs"),
        (999_500, "1.0 ms"),
        (9_949_999, "9.9 ms"),
        (9_950_000, "10 ms"),
        (999_499_999, "999 ms"),
        (1_240_000_000, "1.24 s"),
        (99_400_000_000, "99.4 s"),
        (720_000_000_000, "12 min"),
    ],
)
def test_a_duration_takes_seven_characters_at_most(duration_ns: int, text: str) -> None:
    assert brief_duration(duration_ns) == text
    assert len(text) <= 7


def test_time_of_day_is_utc() -> None:
    assert time_of_day(1_776_248_000_999_999_999) == "10:13:20"


def test_a_gap_in_a_sparkline_differs_from_zero() -> None:
    assert sparkline([None, 0.0, 0.01, 0.5, 1.0, 7.0]) == "–_▁▄██"


@pytest.mark.parametrize("width", range(8))
@pytest.mark.parametrize("text", ["", "kubelet", "核心核心核", "a核b心c", "█▇…"])
def test_fitting_gives_exactly_the_width(text: str, width: int) -> None:
    assert {cells(fitted(text, width)) for fitted in (fit, fit_right, fit_tail)} == {width}


def test_what_is_cut_says_so_at_the_end_that_was_cut() -> None:
    assert fit("memcg_stat_show", 8) == "memcg_s…"
    assert fit_tail("/system.slice/kubelet.service", 16) == "…kubelet.service"
    assert fit_right("9%", 4) == "  9%"


def test_escape_sequences_are_shown_and_not_sent() -> None:
    assert literal("\x1b[2Jx\x07\x9b1m") == "\\x1b[2Jx\\x07\\x9b1m"


def test_characters_without_a_cell_are_escaped() -> None:
    assert literal("a\u200bb\u200fe\u0301") == "a\\u200bb\\u200fe\\u0301"
    assert literal("日本µé") == "日本µé"
