"""What a file of the page holds of a long recording, and the address at which it opens."""

from urllib.parse import parse_qs

from necroscope.model.units import NS_PER_S
from necroscope.views.web.export import LONGEST_NS, _choose_sampled, state_words

HOUR_NS = 3600 * NS_PER_S


def seconds(*spans: tuple[float, float]) -> list[tuple[int, int]]:
    return [(round(start * NS_PER_S), round(end * NS_PER_S)) for start, end in spans]


def test_all_of_a_short_view_is_sampled() -> None:
    assert _choose_sampled((0, LONGEST_NS), seconds((5, 6))) == [(0, LONGEST_NS)]


def test_of_a_long_view_each_window_has_its_share_of_ten_minutes() -> None:
    windows = seconds((600, 610), (3000, 3010))
    assert _choose_sampled((0, HOUR_NS), windows) == seconds((455, 755), (2855, 3155))


def test_windows_that_lie_close_are_one_stretch_and_none_reaches_beyond_the_view() -> None:
    windows = seconds((10, 20), (100, 110))
    (found,) = _choose_sampled((0, HOUR_NS), windows)
    assert found == (0, 300 * NS_PER_S)


def test_a_long_view_without_a_window_is_sampled_in_its_middle() -> None:
    assert _choose_sampled((0, HOUR_NS), []) == seconds((1500, 2100))


def test_the_address_is_in_the_words_of_the_page() -> None:
    words = state_words((0, 9000), (1000, 2000), (3000, 4000), core=3, comm="a b&c", pid=None)
    assert parse_qs(words) == {
        "view": ["0-9"],
        "window": ["1-2"],
        "baseline": ["3-4"],
        "core": ["3"],
        "comm": ["a b&c"],
    }
