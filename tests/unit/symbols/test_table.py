import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from necroscope.symbols.table import SymbolTable


def table(*symbols: tuple[int, int, int, int]) -> SymbolTable:
    """Symbols as (start, size, name, rank), with no limit."""
    starts, sizes, names, ranks = zip(*symbols, strict=True)
    limits = np.full(len(starts), 1000, np.uint64)
    return SymbolTable(
        np.array(starts, np.uint64), np.array(sizes, np.uint64), limits, np.array(names, np.uint32), np.array(ranks, np.uint8)
    )


def test_symbol_covers_its_size_and_no_more() -> None:
    assert table((10, 5, 1, 0), (100, 5, 2, 0)).find([9, 10, 14, 15, 104, 105]) == [None, 1, 1, None, 2, None]


def test_symbol_of_size_0_reaches_to_the_next_one() -> None:
    assert table((10, 0, 1, 0), (100, 5, 2, 0)).find([10, 99, 100]) == [1, 1, 2]


def test_last_symbol_of_size_0_ends_at_its_limit() -> None:
    assert table((10, 0, 1, 0)).find([999, 1000]) == [1, None]


def test_inner_symbol_wins_and_the_outer_one_goes_on_after_it() -> None:
    assert table((10, 90, 1, 0), (20, 10, 2, 0)).find([15, 25, 50]) == [1, 2, 1]


def test_of_one_start_the_lowest_rank_is_shown() -> None:
    assert table((10, 5, 1, 3), (10, 5, 2, 1), (10, 5, 3, 2)).find([12]) == [2]


def test_numbers_that_are_no_address_are_unknown() -> None:
    assert table((10, 5, 1, 0)).find([-1, 1 << 64, (1 << 64) - 1]) == [None, None, None]


ADDRESSES = range(60)
TOP = (1 << 64) - len(ADDRESSES)


@pytest.mark.parametrize(
    ("symbols", "address", "extent"),
    [
        ([(10, 5, 1, 0)], 12, (10, 15)),
        ([(10, 5, 1, 0), (15, 5, 2, 0)], 14, (10, 15)),
        ([(10, 5, 1, 0), (15, 5, 2, 0)], 15, (15, 20)),
        ([(10, 30, 1, 0), (20, 5, 2, 0)], 12, (10, 20)),
        ([(10, 30, 1, 0), (20, 5, 2, 0)], 22, (20, 25)),
        ([(10, 30, 1, 0), (20, 5, 2, 0)], 30, (25, 40)),
        ([(10, 0, 1, 0), (20, 5, 2, 0)], 15, (10, 20)),
        ([(10, 0, 1, 0)], 500, (10, 1000)),
        ([(10, 5, 1, 0), (20, 5, 2, 0)], 3, (0, 10)),
        ([(10, 5, 1, 0), (20, 5, 2, 0)], 17, (15, 20)),
        ([(10, 5, 1, 0)], (1 << 64) - 1, (15, 1 << 64)),
        ([((1 << 64) - 4, 9, 1, 0)], (1 << 64) - 1, ((1 << 64) - 4, 1 << 64)),
    ],
    ids=[
        *("whole symbol", "before an adjacent one", "after an adjacent one", "before an inner one", "inner one"),
        *("after an inner one", "size 0", "size 0 to its limit", "before all", "between", "after all", "end of all addresses"),
    ],
)
def test_extent_is_the_whole_range_of_one_answer(
    symbols: list[tuple[int, int, int, int]], address: int, extent: tuple[int, int]
) -> None:
    assert table(*symbols).extents([address]) == [extent]


def test_table_without_symbols_knows_nothing_of_the_addresses_around() -> None:
    empty = np.zeros(0, np.uint64)
    symbols = SymbolTable(empty, empty, empty, empty.astype(np.uint32), empty.astype(np.uint8))
    assert symbols.find([5]) == [None]
    assert symbols.extents([5, 6]) == [(5, 6), (6, 7)]


SYMBOLS = st.lists(
    st.tuples(st.integers(0, len(ADDRESSES) - 1), st.integers(0, 70), st.integers(0, 1000), st.integers(0, 3)),
    min_size=1,
    max_size=25,
)


@given(SYMBOLS, st.sampled_from([0, TOP]))
def test_answer_is_one_over_each_extent(symbols: list[tuple[int, int, int, int]], base: int) -> None:
    made = table(*((base + start, size, name, rank) for start, size, name, rank in symbols))
    addresses = [base + address for address in ADDRESSES]
    found = dict(zip(addresses, made.find(addresses), strict=True))
    for address, (start, end) in zip(addresses, made.extents(addresses), strict=True):
        assert start <= address < end
        assert {found[other] for other in addresses if start <= other < end} == {found[address]}
