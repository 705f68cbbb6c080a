"""Numbers by range of addresses: ranges never overlap, and an address asked for is always found."""

from hypothesis import given
from hypothesis import strategies as st

from necroscope.sources.perf.ranges import Ranges


def test_a_range_holds_its_start_and_not_its_end() -> None:
    ranges = Ranges()
    ranges.add(15, 10, 20, 7)
    assert [ranges.find(address) for address in (9, 10, 19, 20)] == [None, 7, 7, None]
    assert len(ranges) == 1


def test_ranges_may_come_in_any_order_and_touch() -> None:
    ranges = Ranges()
    for start in (30, 10, 40, 20):
        ranges.add(start, start, start + 10, start)
    assert [ranges.find(address) for address in (9, 10, 19, 20, 29, 30, 39, 40, 49, 50)] == [
        *(None, 10, 10, 20, 20, 30, 30, 40, 40, None),
    ]


def test_cleared_ranges_know_nothing_and_can_be_filled_again() -> None:
    ranges = Ranges()
    ranges.add(10, 10, 20, 1)
    ranges.clear()
    assert ranges.find(15) is None
    assert len(ranges) == 0
    ranges.add(10, 10, 12, 2)
    assert [ranges.find(address) for address in (11, 15)] == [2, None]


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20), st.integers(1, 20)), max_size=20))
def test_whatever_ranges_are_answered_an_address_asked_for_is_found_and_older_ones_stay(
    answers: list[tuple[int, int, int]],
) -> None:
    ranges = Ranges()
    for number, (address, before, after) in enumerate(answers):
        known = {place: ranges.find(place) for place in range(-20, 80)}
        if known[address] is None:
            ranges.add(address, address - before, address + after, number)
            assert ranges.find(address) == number
        for place, found in known.items():
            assert found is None or ranges.find(place) == found
            assert found is not None or ranges.find(place) in (None, number)
            assert ranges.find(place) != number or address - before <= place < address + after


def test_extent_gives_the_range_around_an_address() -> None:
    ranges = Ranges()
    ranges.add(15, 10, 20, 7)
    assert [ranges.extent(address) for address in (9, 10, 19, 20)] == [None, (10, 20, 7), (10, 20, 7), None]
