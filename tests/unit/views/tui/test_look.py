"""Keys as new values of where the user looks."""

from necroscope.views.tui.look import Look
from necroscope.views.tui.screen import CoreOrder, Position

S = 1_000_000_000
SPAN = (100 * S, 160 * S)


def test_looking_back_beyond_the_oldest_stops_there() -> None:
    look = Look().move(-50 * S, SPAN).move(-50 * S, SPAN)
    assert (look.at_ns, look.position) == (100 * S, Position.BACK)


def test_going_forth_to_the_newest_follows_again() -> None:
    assert Look().move(-3 * S, SPAN).move(2 * S, SPAN).at_ns == 159 * S
    assert Look().move(-3 * S, SPAN).move(3 * S, SPAN) == Look()
    assert Look().move(S, SPAN) == Look()


def test_a_moment_that_fell_out_of_memory_is_the_oldest_left() -> None:
    assert Look().oldest(SPAN).moment((130 * S, 190 * S)) == 130 * S


def test_freezing_stays_while_new_rows_come_and_a_second_time_follows() -> None:
    frozen = Look().freeze(SPAN)
    assert (frozen.moment((100 * S, 170 * S)), frozen.position) == (160 * S, Position.FROZEN)
    assert frozen.freeze(SPAN) == Look()


def test_before_the_first_row_no_key_moves_in_time() -> None:
    assert Look().freeze(None) == Look().move(-S, None) == Look().oldest(None) == Look()


def test_sorts_come_round() -> None:
    look, seen = Look(), []
    shown = CoreOrder.CPU
    for _ in range(4):
        look = look.next_sort(shown)
        assert look.sort
        shown = look.sort
        seen.append(shown)
    assert seen == [CoreOrder.BUSY, CoreOrder.SYSTEM, CoreOrder.DELAY, CoreOrder.CPU]


def test_the_core_in_hand_stays_the_same_core_when_the_order_changes() -> None:
    look = Look().select(1, [4, 5, 6]).select(1, [4, 5, 6])
    assert look.cpu == 5
    assert look.select(1, [5, 6, 4]).cpu == 6
    assert look.select(10, [4, 5, 6]).cpu == 6
    assert look.select(-10, [4, 5, 6]).cpu == 4


def test_a_core_that_is_gone_is_no_longer_in_hand() -> None:
    assert Look(cpu=9).select(1, [4, 5]).cpu == 4
    assert Look(cpu=9).toggle_detail([4, 5]).cpu == 4
    assert not Look().toggle_detail([]).is_detail
